"""Models of ours on the Hugging Face Hub: pushed with a card, loaded by name.

Needs the extra: ``pip install 'deltarank[hub]'``; folders on this machine need nothing. What is
shared is a model file, which holds no code: loading one from a stranger cannot run anything.
"""

import json
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from deltarank import __version__
from deltarank.core.extras import install
from deltarank.core.files import write_whole
from deltarank.storage import load
from deltarank.storage.answering import Answering
from deltarank.storage.estimators import last_step
from deltarank.storage.files import as_model_file

FILE, CARD = "model.delta", "README.md"
_LABELS_SHOWN = 30
_COLUMNS_SHOWN = 20


def save_pretrained(model: Any, folder: str | PathLike[str], **card: Any) -> Path:
    """Write a model file and its card to a folder, as they would be pushed; return the folder.

    Parameters
    ----------
    model : fitted ranker, Pipeline that ends in one, or path of a model file
    folder : path
        Made if need be.
    **card
        See `model_card`.

    Examples
    --------
    >>> from deltarank import LogisticRanker
    >>> ranker = LogisticRanker().fit([[30.0], [2.0]], [{"beach"}, {"museum"}])
    >>> folder = save_pretrained(ranker, tempfile.mkdtemp(), data="Two days.")
    >>> sorted(path.name for path in folder.iterdir())
    ['README.md', 'model.delta']
    >>> from_pretrained(folder).rank([[25.0]])
    array([['beach', 'museum']], dtype='<U6')
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    file = as_model_file(model, folder / FILE)
    write_whole(folder / CARD, model_card(Answering.load(file), **card))
    return folder


def push_to_hub(
    model: Any,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | None = None,
    commit_message: str = "Upload a DeltaRank model",
    **card: Any,
) -> str:
    """Push a model and its card to a repository of the Hub, made if need be; return its address.

    Parameters
    ----------
    model : fitted ranker, Pipeline that ends in one, or path of a model file
    repo_id : str
        ``"owner/name"``.
    private : bool, optional
        Of a repository that is made.
    token : str, optional
        By default that of ``hf auth login``.
    commit_message : str
    **card
        See `model_card`.
    """
    api = _hub().HfApi(token=token)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(model, folder, repo_id=repo_id, **card)
        api.create_repo(repo_id, private=private, exist_ok=True)
        done = api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message=commit_message)
    return str(done.commit_url)


def from_pretrained(
    name: str | PathLike[str], *, revision: str | None = None, token: str | None = None
) -> Any:
    """Load the ranker, or the pipeline, of a repository of the Hub, or of a folder."""
    return load(download(name, revision=revision, token=token))


def download(
    name: str | PathLike[str], *, revision: str | None = None, token: str | None = None
) -> Path:
    """Return the model file of a repository or a folder, for the commands: ``deltarank rank``."""
    folder = Path(name)
    if folder.is_dir():
        if not (folder / FILE).is_file():
            raise ValueError(f"{folder} holds no {FILE}: save_pretrained writes one")
        return folder / FILE
    return Path(_hub().hf_hub_download(str(name), FILE, revision=revision, token=token))


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(f"the Hub needs huggingface_hub: {install('hub')}") from error
    return huggingface_hub


def model_card(
    model: Answering,
    *,
    data: str | None = None,
    metrics: Mapping[str, float] | None = None,
    license: str | None = None,
    repo_id: str = "owner/name",
) -> str:
    """Return the card: what the model ranks, by what it was fitted, how well, and how to use it.

    Parameters
    ----------
    model : Answering
        What `save_pretrained` reads from the model file.
    data : str, optional
        Sentences on the rows it was fitted to: the model does not remember them.
    metrics : mapping of str to float, optional
        Measured by you on rows that were held out, such as ``{"rank_loss": 0.041}``.
    license : str, optional
        As the Hub names it, such as ``"cc-by-4.0"``.
    repo_id : str
        For the lines on how to use it.
    """
    head = ["library_name: deltarank", "tags: [multilabel, ranking, deltarank]"]
    head += [] if license is None else [f"license: {json.dumps(license)}"]
    parts = [
        "---\n" + "\n".join(head) + "\n---",
        f"# {_inline(repo_id)}",
        f"A {_name(model)} of DeltaRank {__version__}, which puts {len(model.classes)} labels in "
        "order, most likely relevant first.",
        "## Data",
        data or "Not stated.",
        _features(model),
        _labels(model),
        "## How it was fitted",
        _parameters(model),
        "## Metrics",
        _metrics(metrics),
        "## Use",
        _use(model, repo_id),
    ]
    return "\n\n".join(parts) + "\n"


def _name(model: Answering) -> str:
    last = type(last_step(model.estimator)).__name__
    return last if last == type(model.estimator).__name__ else f"pipeline that ends in a {last}"


def _inline(name: Any) -> str:
    """Return a name that Markdown shows as it is."""
    text = " ".join(str(name).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#&" else sign for sign in text)


def _features(model: Answering) -> str:
    columns = model.columns
    if columns is None:
        return "Rows are what the pipeline's first step takes."
    if isinstance(columns, int):
        return f"A row is {columns} numbers."
    shown = [f"{_inline(name)} ({kind})" for name, kind in columns.items()]
    more = ", ..." * (len(shown) > _COLUMNS_SHOWN)
    return f"A row has {len(shown)} columns: {', '.join(shown[:_COLUMNS_SHOWN])}{more}."


def _labels(model: Answering) -> str:
    shown = [_inline(label) for label in model.classes[:_LABELS_SHOWN]]
    return f"Labels: {', '.join(shown)}{', ...' * (len(model.classes) > _LABELS_SHOWN)}."


def _parameters(model: Answering) -> str:
    ranker = last_step(model.estimator)
    ranker = getattr(ranker, "ranker_", ranker)
    lines = [f"| {_inline(k)} | {_inline(v)} |" for k, v in ranker.get_params(deep=False).items()]
    chosen = {n: getattr(ranker, n) for n in ("C_", "balance_", "gamma_") if hasattr(ranker, n)}
    lines += [f"| {_inline(k.rstrip('_'))}, as chosen | {_inline(v)} |" for k, v in chosen.items()]
    table = "\n".join(["| parameter | value |", "|---|---|", *lines])
    if getattr(ranker, "weight", None) != "rank":
        return table
    return (
        table + "\n\nA training row weighs 1 / (s (m - s)) with s relevant labels of m: with the "
        "logistic or exponential loss of each label that makes the ranking consistent for the rank "
        "loss, provided that the ranker can express the best scores."
    )


def _metrics(metrics: Mapping[str, float] | None) -> str:
    if not metrics:
        return "Not stated."
    lines = [f"| {_inline(name)} | {float(value):.4g} |" for name, value in metrics.items()]
    return "\n".join(["On rows that were held out:", "", "| metric | value |", "|---|---|", *lines])


def _use(model: Answering, repo_id: str) -> str:
    code = f"from deltarank.hub import from_pretrained\n\nranker = from_pretrained({repo_id!r})\n"
    text = f"```python\n{code}ranker.{_call(model)}\n```"
    if model.preparation is not None:
        text += (
            "\n\nThe ranker itself takes features. Files with the columns above are ranked by the "
            f"command:\n\n```python\nfrom deltarank.hub import download\n\nprint(download("
            f"{repo_id!r}))  # deltarank rank THIS new.csv\n```"
        )
    return text


def _call(model: Answering) -> str:
    return "rank(X, top=5)" if model.columns is not None else "decision_function(X)"
