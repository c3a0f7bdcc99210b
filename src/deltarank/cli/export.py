"""The command ``export``: a model as a file for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from deltarank.cli import options


def export(
    model: options.ModelFile,
    onnx: Annotated[Path, typer.Option("--onnx", help="ONNX file to write.")],
    top: Annotated[
        int | None,
        typer.Option(min=1, help="How many labels per row; all by default.", show_default=False),
    ] = None,
    double: Annotated[
        bool, typer.Option("--double", help="Take, compute and give float64, not float32.")
    ] = False,
) -> None:
    """Write a model as an ONNX graph: rows of numbers in, labels in rank order out.

    The graph does what the model does to columns of numbers, scaling included; a model of text or
    categories cannot become one. Needs the extra: pip install 'deltarank[onnx]'.

    \b
    Examples:
      deltarank export yeast.delta --onnx yeast.onnx
      deltarank export yeast.delta --onnx yeast.onnx --top 3
    """
    from deltarank.cli.inputs import note
    from deltarank.storage.onnx_export import export_onnx
    from deltarank.storage.prepared import Model

    loaded = Model.load(model)
    export_onnx(loaded.ranker, onnx, top, double=double, preparation=loaded.preparation)
    note(f"wrote {onnx}: {loaded.ranker.n_features_in_} numbers in, "
         f"{top or len(loaded.classes)} labels out")  # fmt: skip
