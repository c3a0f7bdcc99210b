"""One look for all figures, and how they become files."""

import io
from typing import Any

from deltarank.core.extras import install

# Colours that people with any colour vision can tell apart (Okabe and Ito).
LABEL_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
WRONG = "#B22222"

STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "deltarank",  # the same figure gives the same file
    "figure.constrained_layout.use": True,
}


def new_figure(rows: int, columns: int, *, width: float, height: float, **options: Any) -> Any:
    """Return a figure and its panels, in the house style; sizes in inches."""
    try:
        from matplotlib import pyplot, rc_context
    except ImportError as error:
        raise ImportError(f"figures need matplotlib: {install('report')}") from error
    with rc_context(STYLE):
        return pyplot.subplots(rows, columns, figsize=(width, height), **options)


def to_svg(figure: Any) -> bytes:
    """Render a figure and let go of it."""
    from matplotlib import pyplot, rc_context

    with rc_context(STYLE):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return buffer.getvalue()
