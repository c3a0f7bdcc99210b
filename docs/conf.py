"""How Sphinx builds the site: ``sphinx-build -W --keep-going -b html docs docs/_build/html``."""

import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

from sphinx.ext import autosummary

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import choosing  # noqa: E402
import landing  # noqa: E402

project = "DeltaRank"
author = "The DeltaRank developers"
copyright = author
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["version"]
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "equation_links",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "history",
    "mathml",
    "offline",
    "public_members",
    "repository_links",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

# Markdown: $equations$, links to headings, classes for the landing page.
myst_enable_extensions = ["dollarmath", "attrs_block", "colon_fence"]
myst_heading_anchors = 4
choosing.draw(HERE.parent / "benchmarks" / "choosing.csv", HERE / "generated")
landing.draw(HERE / "results" / "figure1.csv", HERE / "generated" / "regret.svg")

highlight_options = {"python": {"stripnl": True}}  # examples end with a blank line for doctest
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "DeltaRank"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "results/index": [], "benchmarks": [], "comparison": [], "faq": []}

autosummary_generate = True
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.",)  # so that a summary does not end there
default_role = "py:obj"  # a name between backticks is a link where it has a page
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the parameters tell what they take
numpydoc_show_class_members = False

# An example that needs a library which is not here is left out.
EXAMPLE_NEEDS = {
    "plot_train_network": ["torch"],
    "plot_rank_with_onnx": ["onnx", "onnxruntime"],
    "plot_serve_and_ask": ["fastapi", "uvicorn"],
}
absent = [name for name, needs in EXAMPLE_NEEDS.items() if not all(map(find_spec, needs))]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": "plot_",
    "ignore_pattern": "|".join([r"__init__\.py", *map(re.escape, absent)]),
    "within_subsection_order": "gallery.InOrder",
    "reset_modules": ("matplotlib", "gallery.house_style"),
    "image_srcset": ["2x"],
    # Twice what a page shows, for sharp screens.
    "thumbnail_size": (860, 500),
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
}
if not find_spec("torch"):  # nothing of deltarank.torch can be imported then
    exclude_patterns.append("torch.rst")
    suppress_warnings = ["toc.excluded"]
