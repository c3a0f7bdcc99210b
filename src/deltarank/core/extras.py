"""What to type where the library of an extra is missing: one wording."""


def install(extra: str) -> str:
    """Return the command that installs an extra, of a release and in a checkout.

    Examples
    --------
    >>> install("onnx")
    "pip install 'deltarank[onnx]', or in a checkout pip install -e '.[onnx]'"
    """
    return f"pip install 'deltarank[{extra}]', or in a checkout pip install -e '.[{extra}]'"
