"""``--dask``: the files of a pattern on the workers of a cluster, one chunk each.

What files say of columns and words is learned here, some rows at a time. Features are made where a
file is read, and stay there; sums, rankings and measures come here.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from scipy import sparse

from deltarank.cli.columns import column_rows, note_columns
from deltarank.cli.goals import Goal
from deltarank.cli.inputs import (
    STDIN,
    is_catalogued,
    is_pattern,
    learn_training,
    paths_of,
    read_rows,
    require_one_table,
)
from deltarank.cli.measures import Measured, joined, measured
from deltarank.cli.options import Reading
from deltarank.cli.plan import chosen_on_part, chosen_prune, part
from deltarank.cli.rank import Asked, answers_here
from deltarank.cli.training import (
    Settings,
    final_ranker,
    find_recipe,
    fit_as,
    is_tuned,
    make,
    prepare,
)
from deltarank.core.scores import RowError
from deltarank.core.threads import n_threads
from deltarank.core.workers import Chunks, connected
from deltarank.datasets import Data, Preparation
from deltarank.datasets.readers.many_files import features_of_file
from deltarank.storage.prepared import Answer, Model

Array = NDArray[Any]
OPTION = "--dask"
# The ranker whose sums over rows are taken where these are, whatever their number of features.
RANKER = "logistic"


def _files(source: str, reading: Reading) -> list[str]:
    """Return what workers are to read: they know files, by absolute paths."""
    if source == STDIN or is_catalogued(source):
        raise ValueError(
            f"{OPTION} reads files, one per task, that all workers can open; got {source!r}: give "
            "a file or a pattern such as 'folder/*.parquet'"
        )
    require_one_table(source, reading, f"{OPTION}, which reads them elsewhere")
    names = paths_of(source) if is_pattern(source) else [source]
    return [str(Path(name).resolve(strict=True)) for name in names]


def fit_there(
    address: str, source: str, ranker: str | None, settings: Settings, reading: Reading
) -> tuple[Data, Model, float]:
    """Fit a ranker to files whose rows lie on workers.

    Returns
    -------
    data : Data
        Labels, and features but for those of texts.
    model : Model
    seconds : float
    """
    if ranker not in (None, RANKER):
        raise typer.BadParameter(
            f"{OPTION} fits {RANKER} only, not {ranker}: leave --ranker or {OPTION} out"
        )
    if settings.goal is not None and settings.goal.rule is not None:
        raise typer.BadParameter(
            f"{OPTION} finds no rule for {settings.goal.name}, which takes scores of all rows: "
            f"leave --metric or {OPTION} out"
        )
    recipe, paths = find_recipe(RANKER, settings), _files(source, reading)
    with connected(address, OPTION, n_threads()) as client:
        data, n_rows = learn_training(paths, reading)
        preparation = prepare(data, recipe.scale, 0)
        assert data.encoder is not None, "many files are tables"
        settings = settings.suited_to(preparation, data.encoder.is_sparse)
        note_columns(column_rows(data, 0))
        there = FilesThere(client, tuple(paths), tuple(n_rows), reading.format, preparation)

        def fitted() -> Any:
            planned = _planned(recipe, settings, there, data.Y)
            return final_ranker(planned.fit(there.features(), there.labels(data.Y)))

        return data, *fit_as(RANKER, fitted, data, preparation, settings)


def _planned(recipe: Any, settings: Settings, there: "FilesThere", Y: Any) -> Any:
    """Return what is to be fitted; unless asked for more, C is chosen here on a part."""
    size = there.preparation.n_features, Y.shape[1]
    if not is_tuned(recipe, settings) or settings.tune:
        no_rows = np.empty(0, np.intp)
        prune = chosen_prune(settings, *size, lambda: there.some(no_rows)[1])
        return make(recipe, settings).set_params(prune=prune)
    rows, labels = part(Y, settings.seed)
    X, length = there.some(rows)
    prune = chosen_prune(settings, *size, lambda: length)
    return chosen_on_part(recipe, settings, X, Y[rows][:, labels]).set_params(prune=prune)


class FilesThere(NamedTuple):
    """Files that workers read, and what was learned of them here."""

    client: Any
    paths: tuple[str, ...]
    n_rows: tuple[int, ...]
    format: str | None
    preparation: Preparation

    def features(self) -> Any:
        """Return the features of all files, a Dask array with a chunk per file."""
        import dask

        # Sent once, and kept by each worker.
        shared = dask.delayed(self.preparation, pure=False, traverse=False)
        read = dask.delayed(_features, pure=False)
        return _stacked(
            [read(path, self.format, shared) for path in self.paths],
            self.n_rows,
            self.preparation.n_features,
            np.float64,
        )

    def labels(self, Y: Any) -> Any:
        """Return label sets, cut as the features are."""
        import dask

        ends = np.cumsum([0, *self.n_rows])
        parts = [dask.delayed(Y[begin:end], pure=False) for begin, end in pairwise(ends)]
        return _stacked(parts, self.n_rows, Y.shape[1], Y.dtype)

    def some(self, rows: Array) -> tuple[Any, float | None]:
        """Return the features of some rows, here, and the mean length of all if they are sparse."""
        ends = np.cumsum([0, *self.n_rows])
        asked = [
            (path, rows[(rows >= begin) & (rows < end)] - begin)
            for path, (begin, end) in zip(self.paths, pairwise(ends), strict=True)
        ]
        chunks = Chunks(self.client, self.client.map(tuple, asked, pure=False))
        parts = list(chunks.map(_some, self.format, self.preparation).each())
        kept, squares = zip(*parts, strict=True)
        if not sparse.issparse(kept[0]):
            return np.vstack(kept), None
        length = float(np.sqrt(sum(squares) / sum(self.n_rows)))
        return sparse.vstack(kept, format="csr"), length


def _stacked(parts: list[Any], n_rows: tuple[int, ...], width: int, dtype: Any) -> Any:
    import dask.array as da

    chunks = [
        da.from_delayed(part, (n, width), dtype=dtype)
        for part, n in zip(parts, n_rows, strict=True)
    ]
    return da.concatenate(chunks, axis=0)


def _features(path: str, format: str | None, preparation: Preparation) -> Any:
    assert preparation.encoder is not None, "many files are tables"
    return preparation.transform(features_of_file(path, preparation.encoder, format=format))


def _some(
    asked: tuple[str, Array], format: str | None, preparation: Preparation
) -> tuple[Any, float]:
    """Return the rows of a file that are asked for, and the squares of all its features."""
    path, rows = asked
    X = _features(path, format, preparation)
    values = X.data if sparse.issparse(X) else X
    return X[rows], float(np.square(values).sum())


def answers_there(
    address: str, source: str, model: Model, reading: Reading, asked: Asked
) -> Iterator[Answer]:
    """Yield the best labels of each row, in order; a worker ranks a file at a time."""
    paths, n_before = _files(source, reading), 0
    with connected(address, OPTION, n_threads()) as client:
        chunks = Chunks(client, client.map(str, paths, pure=False))
        for answers, n_rows in chunks.map(_answers, model, reading, asked).each():
            if isinstance(answers, RowError):
                raise RowError(n_before + answers.row, answers.problem)
            for answer in answers:
                yield answer._replace(row=n_before + answer.row)
            n_before += n_rows


def _answers(path: str, model: Model, reading: Reading, asked: Asked) -> tuple[Any, int]:
    """Return the answers to the rows of a file and how many they are, or what is wrong with one."""
    try:
        answers = list(answers_here(path, model, reading, asked))
    except RowError as error:
        return error, 0
    return answers, len(answers)


def measure_there(
    address: str, source: str, model: Model, goal: Goal | None, reading: Reading
) -> tuple[Measured, Array]:
    """Measure the rows of files, scored on workers.

    Returns
    -------
    whole : Measured
    pairs_won : array of shape (m,)
        As `measures.pairs_won` gives them.
    """
    if goal is not None and not goal.is_of_rows:
        raise ValueError(
            f"{OPTION} cannot measure {goal.name}, a mean over labels that the model was made for: "
            f"leave {OPTION} out"
        )
    paths = _files(source, reading)
    with connected(address, OPTION, n_threads()) as client:
        files = Chunks(client, client.map(str, paths, pure=False))
        scored = files.map(ScoredFile.of, model, reading)
        whole = joined(scored.map(ScoredFile.measured, goal).each())
        rivals = _sorted_by_label(list(scored.map(ScoredFile.relevant).each()))
        won = scored.total(ScoredFile.pairs_won, rivals, merge=sum)
    return whole, won


class ScoredFile(NamedTuple):
    """Label sets and scores of the rows of a file."""

    Y: Any
    scores: Array

    @classmethod
    def of(cls, path: str, model: Model, reading: Reading) -> "ScoredFile":
        """Read and score a file."""
        rows = read_rows(path, model.preparation, model.classes, reading, labelled=True)
        return cls(rows.Y, model.all_scores(rows.X))

    def measured(self, goal: Goal | None) -> Measured:
        """Return what these rows add to the measures."""
        return measured(self.Y, self.scores, goal)

    def relevant(self) -> tuple[Array, Array]:
        """Return relevant labels and their scores, of all rows."""
        cells = sparse.coo_array(self.Y)
        return cells.col, self.scores[cells.row, cells.col]

    def pairs_won(self, rivals: tuple[Array, Array]) -> Array:
        """Return, per label, in how many pairs rows with it score above rows of this file without.

        Rivals are the scores of all rows with the label, ascending, label after label, and where
        each label's begin. A tie counts half, so sums of files are exact.
        """
        starts, values = rivals
        columns, won = sparse.csc_array(self.Y), np.zeros(self.scores.shape[1])
        for label in np.flatnonzero(np.diff(starts)):
            own = values[starts[label] : starts[label + 1]]
            without = np.ones(len(self.scores), bool)
            without[columns.indices[columns.indptr[label] : columns.indptr[label + 1]]] = False
            others = self.scores[without, label]
            beaten = np.searchsorted(own, others, "left") + np.searchsorted(own, others, "right")
            won[label] = len(own) * len(others) - beaten.sum() / 2
        return won


def _sorted_by_label(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    labels, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((values, labels))
    starts = np.searchsorted(labels[order], np.arange(labels.max(initial=-1) + 2))
    return starts, values[order]
