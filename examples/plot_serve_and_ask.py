"""
Serve a model, and ask it
=========================

``deltarank serve`` puts a model file behind HTTP. Here a server is started, asked for a ranking
with its reasons, and stopped. Needs ``pip install 'deltarank[serve]'``.
"""

import json
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

DELTARANK = str(Path(sys.executable).parent / "deltarank")


def ask(url, question):
    """Post JSON and return the answer."""
    request = urllib.request.Request(
        f"{url}/rank", json.dumps(question).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


# %%
# Fit and serve, by the commands one would type. The server tells its address on standard error.

recipe = {"description": "a hot curry of chili", "minutes": 15, "season": "winter"}
with tempfile.TemporaryDirectory() as folder:
    with Path(folder, "recipes.csv").open("w") as file:
        subprocess.run([DELTARANK, "datasets", "example"], stdout=file, check=True)
    fit = [DELTARANK, "fit", "recipes.csv", "--C", "10", "--model", "recipes.delta"]
    subprocess.run(fit, cwd=folder, stderr=subprocess.DEVNULL, check=True)
    server = subprocess.Popen(
        [DELTARANK, "serve", "recipes.delta", "--port", "0"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = server.stderr.readline().split()[-1]  # serving recipes.delta at http://...
        ranking = ask(url, {"item": recipe, "top": 6, "explain": True})["rankings"][0]
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate()

# %%
# The answer, as JSON:

print(json.dumps(ranking, indent=1)[:520], "...")

# %%
# And as a picture: the ranking, and what puts its first label above its second.

why = ranking["why"]
reasons = why["reasons"][:6]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
left.barh(ranking["labels"], ranking["scores"])
left.set_title("a hot curry of chili, 15 minutes, winter", loc="left")
left.set_xlabel("score")
parts = np.array([reason["adds"] for reason in reasons])
shown = [str(reason["feature"]).removeprefix("description:") for reason in reasons]
right.barh(shown, parts, color=np.where(parts > 0, "#0072B2", "#D55E00"))
right.set_title(f"why {why['above']} is above {why['below']}", loc="left")
right.set_xlabel("adds to the difference of scores")
for panel in (left, right):
    panel.invert_yaxis()
    panel.axvline(0, color="0.4", linewidth=0.8)
plt.show()

# %%
# Chili and curry put *spicy* first. That it takes 15 minutes speaks for *quick*, and is not
# enough.
