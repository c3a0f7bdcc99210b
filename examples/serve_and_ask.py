"""Fit a model to recipes, serve it, and ask for a ranking with its reasons.

Needs ``pip install 'deltarank[serve]'``; run ``python examples/serve_and_ask.py``.
"""

import json
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

DELTARANK = str(Path(sys.executable).parent / "deltarank")


def ask(url: str, question: dict) -> dict:
    """Post JSON and return the answer."""
    request = urllib.request.Request(
        f"{url}/rank", json.dumps(question).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def main() -> dict:
    """Return the ranking of one recipe."""
    with tempfile.TemporaryDirectory() as folder:
        with Path(folder, "recipes.csv").open("w") as file:
            subprocess.run([DELTARANK, "datasets", "example"], stdout=file, check=True)
        fit = [DELTARANK, "fit", "recipes.csv", "--C", "10", "--model", "recipes.delta"]
        subprocess.run(fit, cwd=folder, stderr=subprocess.DEVNULL, check=True)
        server = subprocess.Popen(
            [DELTARANK, "serve", "recipes.delta", "--port", "0"],
            cwd=folder, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            url = server.stderr.readline().split()[-1]  # serving recipes.delta at http://...
            recipe = {"description": "a hot curry of chili", "minutes": 15, "season": "winter"}
            return ask(url, {"item": recipe, "top": 3, "explain": True})["rankings"][0]
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
