"""Maps from scores to probabilities as nodes of an ONNX graph."""

import numpy as np

from deltarank.storage.onnx_graph import Graph
from deltarank.wrappers.calibration import Calibration, Curve


def add_chances(graph: Graph, scores: str, calibration: Calibration) -> str:
    """Return the probabilities of scores: a curve or steps per label, 0 or 1 for constant ones.

    Steps are lines between knots: the first level, plus the rise of each line up to the score.
    """
    slopes, offsets = np.zeros((2, len(calibration.maps)))
    longest = max(2, *(len(it.knots) for it in calibration.maps if not isinstance(it, Curve)), 2)
    knots, widths, rises = np.zeros((3, len(calibration.maps), longest - 1))
    widths += 1.0
    levels, curved = np.zeros(len(calibration.maps)), np.zeros(len(calibration.maps), bool)
    for label, mapping in enumerate(calibration.maps):
        if isinstance(mapping, Curve):
            slopes[label], offsets[label], curved[label] = mapping.slope, mapping.offset, True
            continue
        wide = np.flatnonzero(np.diff(mapping.knots) > 0)
        n_lines = len(wide)
        knots[label, :n_lines] = mapping.knots[wide]
        widths[label, :n_lines] = np.diff(mapping.knots)[wide]
        rises[label, :n_lines] = np.diff(mapping.levels)[wide]
        levels[label] = mapping.levels[0]
    zero, one = graph.constant(np.array(0.0)), graph.constant(np.array(1.0))
    apart = graph.add("Unsqueeze", scores, graph.constant([2], np.int64))
    way = graph.add("Div", graph.add("Sub", apart, graph.constant(knots)), graph.constant(widths))
    gained = graph.add("Mul", graph.add("Clip", way, zero, one), graph.constant(rises))
    last = graph.constant([2], np.int64)
    stepped = graph.add("ReduceSum", gained, last, keepdims=0)
    stepped = graph.add("Add", stepped, graph.constant(levels))
    curve = graph.add("Mul", scores, graph.constant(slopes))
    curve = graph.add("Sigmoid", graph.add("Add", curve, graph.constant(offsets)))
    chances = graph.add("Where", graph.constant(curved, np.bool_), curve, stepped)
    limit = graph.constant(np.array(calibration.constant))
    usual = graph.add("Less", graph.add("Abs", scores), limit)
    always = graph.as_numbers(graph.add("Greater", scores, zero))
    return graph.add("Where", usual, chances, always)
