"""Check an install without extras: what works, and that the rest names its extra in one line.

    .venv/bin/python .ci/bare.py

Run it with the Python of an environment made by ``pip install .`` alone.
"""

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

COMMAND = Path(sys.executable).with_name("deltarank")
# Libraries that only extras bring.
EXTRAS = ("matplotlib", "onnx", "fastapi", "pyarrow", "pooch", "torch", "dask", "mlflow")

WORKING = [
    "datasets example > recipes.csv",
    "fit recipes.csv --model recipes.delta",
    "rank recipes.delta recipes.csv --top 3 > ranked.jsonl",
    "evaluate recipes.delta recipes.csv",
    "explain recipes.delta recipes.csv --row 0 --labels spicy sweet",
    "compare recipes.csv --rankers logistic",
    "reproduce section4",
    "datasets",
]
# A command and the extra that it should ask for, in its only line on standard error.
WANTING = {
    "export recipes.delta --onnx recipes.onnx": "onnx",
    "serve recipes.delta": "serve",
    "fit table.parquet --model table.delta": "tables",
    "datasets fetch yeast": "download",
}
IMPORTS = {
    "import deltarank; [getattr(deltarank, name) for name in deltarank.__all__]": None,
    "import deltarank.torch": "torch",
    "import deltarank.mlflow": "mlflow",
    "from deltarank import LogisticRanker as R; R(device='cuda').fit([[0.], [1.]], [{0}, {1}])": (
        "gpu"
    ),
}


def run(command: str, folder: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a folder and say so."""
    print(f"$ {command}", flush=True)
    return subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, timeout=300
    )


def check(holds: bool, claim: str, result: subprocess.CompletedProcess[str]) -> None:
    """Stop with what was printed if a claim does not hold."""
    if not holds:
        raise SystemExit(f"not so: {claim}\n{result.stdout}{result.stderr}")


def asks_for(extra: str, result: subprocess.CompletedProcess[str]) -> None:
    """Check that a command failed and that its last line names the extra."""
    lines = result.stderr.strip().splitlines()
    check(result.returncode == 1, "it fails with exit status 1", result)
    check(f"pip install 'deltarank[{extra}]'" in lines[-1], f"it names the extra {extra}", result)


def main() -> None:
    """Run everything in a folder of its own."""
    present = [name for name in EXTRAS if find_spec(name)]
    if present:
        raise SystemExit(f"not a bare install: {', '.join(present)} can be imported")
    with tempfile.TemporaryDirectory() as folder:
        for arguments in WORKING:
            result = run(f"{COMMAND} {arguments}", folder)
            check(result.returncode == 0, "it works without extras", result)
        ranked = Path(folder, "ranked.jsonl").read_text().splitlines()
        check(len(ranked) == 400, "all 400 rows are ranked", result)
        Path(folder, "table.parquet").write_bytes(b"PAR1 not read PAR1")
        for arguments, extra in WANTING.items():
            result = run(f"{COMMAND} {arguments}", folder)
            asks_for(extra, result)
            one_line = re.fullmatch(r"deltarank: [^\n]+\n", result.stderr)
            check(one_line is not None, "it says so in one line", result)
        for code, extra in IMPORTS.items():
            result = run(f'{sys.executable} -c "{code}"', folder)
            if extra is None:
                check(result.returncode == 0, "every public name can be imported", result)
            else:
                asks_for(extra, result)
    print(f"{len(WORKING) + len(WANTING) + len(IMPORTS)} passed, 0 failed")


if __name__ == "__main__":
    main()
