"""Settings shared by all tests."""

import os
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile(
    "deltarank", deadline=None, max_examples=60, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("deltarank")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the real data sets; tests that need it are skipped where there is none."""
    folder = os.environ.get("DELTARANK_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data absent: set DELTARANK_DATA to their folder")
    return Path(folder)
