"""No bytes make a reader crash, hang, raise somebody else's error or shift rows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
FUZZER = Path(__file__).with_name("fuzzing.py")
SECONDS = float(os.environ.get("DELTARANK_FUZZ_SECONDS", "10"))
FORMATS = ("arff", "libsvm", "xmc", "csv", "tsv", "jsonl", "parquet", "arrow")


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_files_are_refused_or_read_right(tally, tmp_path, format):
    pytest.importorskip("pyarrow")
    counts = tally("readers", format)
    done = subprocess.run(
        [sys.executable, str(FUZZER), format, str(SECONDS), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=SECONDS + 120,
    )
    if done.returncode:
        counts.lost(f"{tmp_path / 'data'} ended the process ({done.returncode}): {done.stderr}")
        return
    found = json.loads(done.stdout)
    counts.refused(found["refused"])
    counts.survived(found["survived"])
    for loss in found["losses"]:
        counts.lost(loss)
    assert found["refused"] > 100 * SECONDS / 10
    assert found["survived"] > 10 * SECONDS / 10, "hardly a file was read, so nothing was tested"
