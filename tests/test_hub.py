"""Models on the Hugging Face Hub, tried against folders: no test asks the network."""

import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deltarank import CalibratedRanker, LogisticRanker, hub, save

X = np.array([[30.0, 0.1], [2.0, 0.9], [15.0, 0.4], [20.0, 0.2]])
Y = [{"beach"}, {"museum"}, {"beach", "a|b"}, {"a|b"}]


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """A folder in the place of the Hub, behind the functions of huggingface_hub that we call."""
    folder = tmp_path / "hub"

    class HfApi:
        def __init__(self, token=None):
            self.token = token

        def create_repo(self, repo_id, *, private=None, exist_ok=False):
            (folder / repo_id).mkdir(parents=True, exist_ok=exist_ok)

        def upload_folder(self, *, repo_id, folder_path, commit_message):
            shutil.copytree(folder_path, folder / repo_id, dirs_exist_ok=True)
            return SimpleNamespace(commit_url=f"hub/{repo_id}: {commit_message}")

    def hf_hub_download(repo_id, filename, *, revision=None, token=None):
        assert revision in (None, "v1")
        return str(folder / repo_id / filename)

    fake = SimpleNamespace(HfApi=HfApi, hf_hub_download=hf_hub_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return folder


def test_the_functions_of_the_library_take_what_we_give_them():
    library = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    from inspect import signature

    signature(library.HfApi).bind(token=None)
    signature(library.HfApi.create_repo).bind(None, "o/n", private=None, exist_ok=True)
    upload = {"repo_id": "o/n", "folder_path": "f", "commit_message": "m"}
    signature(library.HfApi.upload_folder).bind(None, **upload)
    signature(library.hf_hub_download).bind("o/n", "model.delta", revision=None, token=None)


@pytest.mark.parametrize("kind", ["ranker", "pipeline", "file"])
def test_what_is_pushed_comes_back(remote, tmp_path, kind):
    ranker = LogisticRanker().fit(X, Y)
    model = {"ranker": ranker, "pipeline": make_pipeline(StandardScaler(), LogisticRanker())}
    model["pipeline"].fit(X, Y)
    save(ranker, tmp_path / "r.delta")
    model["file"] = tmp_path / "r.delta"
    told = hub.push_to_hub(model[kind], "me/weather", metrics={"rank_loss": 0.25})
    assert told == "hub/me/weather: Upload a DeltaRank model"
    back = hub.from_pretrained("me/weather", revision="v1")
    expected = ranker if kind == "file" else model[kind]
    assert_array_equal(back.decision_function(X), expected.decision_function(X))
    card = (remote / "me/weather/README.md").read_text()
    assert "| rank\\_loss | 0.25 |" in card
    assert "from_pretrained('me/weather')" in card


def test_the_card_says_what_the_model_is(tmp_path):
    ranker = CalibratedRanker(LogisticRanker(C=0.5), cv=2).fit(np.tile(X, (5, 1)), Y * 5)
    folder = hub.save_pretrained(
        ranker, tmp_path / "m", data="Four days by the sea.", license="cc0-1.0"
    )
    head, card = (folder / "README.md").read_text().split("\n---\n")
    assert 'license: "cc0-1.0"' in head
    assert "library_name: deltarank" in head
    assert "A CalibratedRanker of DeltaRank" in card
    assert "which puts 3 labels in order" in card
    assert "Labels: a\\|b, beach, museum." in card
    assert "A row is 2 numbers." in card
    assert "Four days by the sea." in card
    assert "| C | 0.5 |" in card
    assert "| weight | rank |" in card
    assert "consistent for the rank loss" in card
    assert "## Metrics\n\nNot stated." in card


def test_a_name_cannot_break_out_of_the_card(tmp_path):
    ranker = LogisticRanker().fit([[0.0], [1.0]], [{"<b>x"}, {"a\n# b"}])
    card = (hub.save_pretrained(ranker, tmp_path) / "README.md").read_text()
    assert "Labels: \\<b\\>x, a \\# b." in card


def test_a_folder_without_a_model_and_an_absent_library_are_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"holds no model\.delta: save_pretrained writes one"):
        hub.from_pretrained(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"pip install 'deltarank\[hub\]'"):
        hub.from_pretrained("me/weather")
