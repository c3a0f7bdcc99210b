"""Export a ranker as an ONNX graph and rank with onnxruntime alone, without DeltaRank.

Needs ``pip install 'deltarank[onnx]' onnxruntime``; run ``python examples/rank_with_onnx.py``.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deltarank import LogisticRanker, export_onnx

X = np.array([[30, 0.1], [28, 0.2], [2, 0.9], [-5, 0.8], [12, 0.7], [25, 0.6]])  # warmth, rain
Y = [{"beach"}, {"beach", "ice cream"}, {"museum"}, {"museum"}, {"museum"}, {"ice cream", "museum"}]


def main() -> list[list[str]]:
    """Train, export, and rank two days by the graph."""
    model = make_pipeline(StandardScaler(), LogisticRanker(C=10)).fit(X, Y)
    path = Path(tempfile.mkdtemp(), "weather.onnx")
    export_onnx(model, path, top=2)

    session = onnxruntime.InferenceSession(path)
    names = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
    indices, _ = session.run(["label_indices", "scores"], {"X": np.array([[29, 0.1], [1, 0.9]])})
    return [[names[i] for i in row] for row in indices]


if __name__ == "__main__":
    for ranking in main():
        print(" > ".join(ranking))
