"""
Rank without DeltaRank: ONNX
============================

An exported graph returns the *ranking*, so that a program in any language with an ONNX runtime
gets labels in order. Needs ``pip install 'deltarank[onnx]' onnxruntime``.
"""

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from matplotlib.colors import ListedColormap
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deltarank import LogisticRanker, export_onnx

X = np.array([[30, 0.1], [28, 0.2], [2, 0.9], [-5, 0.8], [12, 0.7], [25, 0.6]])  # warmth, rain
Y = [{"beach"}, {"beach", "ice cream"}, {"museum"}, {"museum"}, {"museum"}, {"ice cream", "museum"}]
model = make_pipeline(StandardScaler(), LogisticRanker(C=10)).fit(X, Y)
path = Path(tempfile.mkdtemp(), "weather.onnx")
export_onnx(model, path, top=2)

# %%
# From here on only onnxruntime is used. Names of the labels are in the file.

session = onnxruntime.InferenceSession(path)
names = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
indices, _ = session.run(["label_indices", "scores"], {"X": np.float32([[29, 0.1], [1, 0.9]])})
rankings = [[names[i] for i in row] for row in indices]
for ranking in rankings:
    print(" > ".join(ranking))

# %%
# The first label for every kind of weather, by the graph; points are the six days it was trained
# on.

warmth, rain = np.meshgrid(np.linspace(-8, 33, 160), np.linspace(0, 1, 120))
days = np.column_stack([warmth.ravel(), rain.ravel()])
best = session.run(["label_indices"], {"X": days.astype(np.float32)})[0]
first = best[:, 0].reshape(warmth.shape)

figure, panel = plt.subplots(figsize=(6.5, 3.6))
colours = ["#56B4E9", "#E69F00", "#CC79A7"]
panel.pcolormesh(warmth, rain, first, cmap=ListedColormap(colours), vmin=0, vmax=2, alpha=0.55)
panel.plot(*X.T, "o", color="black")
for label, name in enumerate(names):
    chosen = first == label
    if chosen.any():
        panel.text(
            warmth[chosen].mean(), rain[chosen].mean() - 0.05, name, ha="center", weight="bold"
        )
panel.set(xlabel="warmth", ylabel="rain", title="first label, by onnxruntime")
plt.show()

# %%
# Scaling is part of the graph: it takes degrees and shares of rain as they come.
