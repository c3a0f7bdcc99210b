"""Graphs of ONNX operators, put together node by node; numbers are float64 throughout."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Old enough for runtimes of 2022, and all that is needed.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
ML_DOMAIN = "ai.onnx.ml"
INPUT, RANKED, SCORES = "X", "label_indices", "scores"
LARGEST_FILE = 2**31 - 2**20


class Graph:
    """Nodes in the order they are to be run, and the arrays they need.

    A value is known by its name; `X`, the rows, is there from the start.
    """

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._arrays: list[Any] = []
        self._has_trees = False
        self.n_bytes = 0

    def constant(self, array: Any, dtype: Any = np.float64) -> str:
        """Add an array; return its name."""
        from onnx import numpy_helper

        name = f"constant_{len(self._arrays)}"
        values = np.ascontiguousarray(array, dtype)
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
        self._has_trees = True
        options = {"domain": ML_DOMAIN, "n_targets": n_trees, "aggregate_function": "SUM"}
        return self.add("TreeEnsembleRegressor", rows, **options, **attributes)

    def affine(self, rows: str, matrix: NDArray[Any], shift: NDArray[Any]) -> str:
        """Return rows times a matrix, plus a row."""
        product = self.add("MatMul", rows, self.constant(matrix))
        return self.add("Add", product, self.constant(shift))

    def rank(self, scores: str, top: int) -> None:
        """End the graph with the best columns and their scores; ties stay in column order."""
        k = self.constant([top], np.int64)
        self.add_node("TopK", [scores, k], [SCORES, RANKED], axis=1, largest=1, sorted=1)

    def serialized(self, n_features: int, top: int, about: dict[str, Any]) -> bytes:
        """Return the model as bytes, checked, with JSON texts about it among its metadata."""
        import onnx
        from onnx import TensorProto, helper

        if self.n_bytes > LARGEST_FILE:
            raise ValueError(
                f"an ONNX file holds at most 2 GB, and this ranker takes {self.n_bytes / 1e9:.1f}; "
                "save() has no such limit"
            )
        rows = helper.make_tensor_value_info(INPUT, TensorProto.DOUBLE, ["n", n_features])
        outputs = [
            helper.make_tensor_value_info(RANKED, TensorProto.INT64, ["n", top]),
            helper.make_tensor_value_info(SCORES, TensorProto.DOUBLE, ["n", top]),
        ]
        graph = helper.make_graph(self._nodes, "deltarank", [rows], outputs, self._arrays)
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                *([helper.make_opsetid(ML_DOMAIN, ML_OPSET)] if self._has_trees else []),
            ],
            ir_version=IR_VERSION,
            producer_name="deltarank",
        )
        helper.set_model_props(model, {key: json.dumps(value) for key, value in about.items()})
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())
