"""Graphs of ONNX operators, put together node by node; numbers are of one kind throughout."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Old enough for runtimes of 2022, and all that is needed.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
ML_DOMAIN = "ai.onnx.ml"
INPUT, RANKED, SCORES, CHANCES = "X", "label_indices", "scores", "probabilities"
LARGEST_FILE = 2**31 - 2**20


class Graph:
    """Nodes in the order they are to be run, and the arrays they need.

    A value is known by its name.

    Parameters
    ----------
    dtype : float32 or float64
        Of numbers that come in, are computed, and go out.
    """

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)
        self._nodes: list[Any] = []
        self._arrays: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self.n_bytes = 0

    def input(self, name: str, n_columns: int, text: bool = False) -> str:
        """Add rows of numbers, or of strings, that the graph is given; return their name."""
        from onnx import TensorProto, helper

        kind = TensorProto.STRING if text else self._kind
        self._inputs.append(helper.make_tensor_value_info(name, kind, ["n", n_columns]))
        return name

    @property
    def _kind(self) -> int:
        from onnx import helper

        return int(helper.np_dtype_to_tensor_dtype(self.dtype))

    def cast(self, value: str, dtype: Any) -> str:
        """Return a value as numbers of another kind."""
        from onnx import helper

        return self.add("Cast", value, to=int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))

    def as_numbers(self, marks: str) -> str:
        """Return 0 and 1 for false and true."""
        return self.cast(marks, self.dtype)

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Add an array; return its name."""
        from onnx import numpy_helper

        name = f"constant_{len(self._arrays)}"
        # Numbers too large for float32 are those that put a label first or last whatever the row.
        values = np.ascontiguousarray(array, dtype or self.dtype).reshape(np.shape(array))
        self._arrays.append(numpy_helper.from_array(values, name))
        self.n_bytes += values.nbytes
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; return the name of the output."""
        name = f"{operator}_{len(self._nodes)}".lower()
        self.add_node(operator, inputs, [name], **attributes)
        return name

    def add_node(self, operator: str, inputs: Any, outputs: Any, **attributes: Any) -> None:
        """Add a node whose outputs have the given names."""
        from onnx import helper

        self._nodes.append(helper.make_node(operator, list(inputs), list(outputs), **attributes))

    def trees(self, rows: str, n_trees: int, **attributes: Any) -> str:
        """Add trees, each with an output column of its own; return the name of the outputs."""
        options = {"domain": ML_DOMAIN, "n_targets": n_trees, "aggregate_function": "SUM"}
        return self.add("TreeEnsembleRegressor", rows, **options, **attributes)

    def affine(
        self, rows: str, matrix: NDArray[Any], shift: NDArray[Any], dtype: Any = None
    ) -> str:
        """Return rows times a matrix, plus a row."""
        product = self.add("MatMul", rows, self.constant(matrix, dtype))
        return self.add("Add", product, self.constant(shift, dtype))

    def rank(self, scores: str, top: int, chances: str | None = None) -> None:
        """End the graph with the best columns and their scores; ties stay in column order."""
        from onnx import TensorProto, helper

        k = self.constant([top], np.int64)
        self.add_node("TopK", [scores, k], [SCORES, RANKED], axis=1, largest=1, sorted=1)
        kinds = {RANKED: TensorProto.INT64, SCORES: self._kind}
        if chances is not None:
            self.add_node("GatherElements", [chances, RANKED], [CHANCES], axis=1)
            kinds[CHANCES] = self._kind
        self._outputs = [
            helper.make_tensor_value_info(name, kind, ["n", top]) for name, kind in kinds.items()
        ]

    def serialized(self, about: dict[str, Any]) -> bytes:
        """Return the model as bytes, checked, with JSON texts about it among its metadata."""
        import onnx
        from onnx import helper

        if self.n_bytes > LARGEST_FILE:
            raise ValueError(
                f"an ONNX file holds at most 2 GB, and this ranker takes {self.n_bytes / 1e9:.1f}; "
                "save() has no such limit"
            )
        graph = helper.make_graph(
            self._nodes, "deltarank", self._inputs, self._outputs, self._arrays
        )
        opsets = {
            "": OPSET,
            **{node.domain: ML_OPSET for node in self._nodes if node.domain},
        }
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(*opset) for opset in opsets.items()],
            ir_version=IR_VERSION,
            producer_name="deltarank",
        )
        helper.set_model_props(model, {key: json.dumps(value) for key, value in about.items()})
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())


def not_above(thresholds: NDArray[np.float64], dtype: Any) -> NDArray[Any]:
    """Return thresholds as numbers of a kind: those of that kind go left just as before."""
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(dtype)
    return np.where(rounded > thresholds, np.nextafter(rounded, dtype.type(-np.inf)), rounded)
