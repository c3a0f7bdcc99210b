"""Of a class, show what this library defines: not what it inherits from scikit-learn or PyTorch."""

from typing import Any

from sphinx.application import Sphinx


def is_foreign(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Tell Sphinx to skip what comes from another package; None leaves the choice to it."""
    definition = getattr(member, "fget", member)
    home = getattr(definition, "__module__", None) or ""
    return True if what == "class" and not home.startswith("deltarank") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Choose as classes are documented."""
    app.connect("autodoc-skip-member", is_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
