"""What the server does, without the server: a model in memory, items in, rankings out."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltarank.core.caching import cached_property
from deltarank.core.scores import RowError
from deltarank.datasets.encoder import CategoryColumn
from deltarank.explanations import is_explainable
from deltarank.serving.items import ItemError, Reader
from deltarank.serving.reasons import reasons
from deltarank.storage.prepared import SETS, Model

REASONS = 10
MOST_EXPLAINED = 20
QUICK_SECONDS = 2e-3
_CHOICES_SHOWN = 1000


@dataclass(frozen=True)
class Limits:
    """What a single request may cost, and how many there may be at once.

    Examples
    --------
    >>> Limits(rows=10)
    Limits(rows=10, bytes=1048576, seconds=10.0, labels=100000, requests=1000)
    """

    rows: int = 1000
    bytes: int = 1 << 20
    seconds: float = 10.0
    labels: int = 100_000
    requests: int = 1000


@dataclass(frozen=True)
class Service:
    """A model that answers; `examples` are items to try, and `truths` their labels, if known.

    Examples
    --------
    >>> import tempfile
    >>> from deltarank import LogisticRanker, save
    >>> path = Path(tempfile.mkdtemp(), "weather.delta")
    >>> save(LogisticRanker().fit([[30.0], [2.0]], [{"beach"}, {"museum"}]), path)
    >>> service = Service.load(path, Limits())
    >>> service.warm_up()
    >>> service.is_quick() in (True, False)
    True
    >>> service.about()["labels"]
    ['beach', 'museum']
    >>> [ranking] = service.rank([[25.0]], top=1, explain=False)
    >>> ranking["labels"]
    ['beach']
    >>> service.rank_to_json([[25.0]], top=1, explain=False)[:34]
    b'{"rankings": [{"labels": ["beach"]'
    """

    model: Model
    limits: Limits = field(default_factory=Limits)
    examples: tuple[Any, ...] = ()
    truths: tuple[list[str], ...] | None = None

    @classmethod
    def load(cls, path: Path, limits: Limits) -> "Service":
        """Read a model file into memory: later changes of the file do not matter."""
        return cls(Model.load(path, mmap=False), limits)

    @cached_property
    def _read(self) -> Reader:
        return Reader(self.model.preparation, may_miss=self.model.ranker.accepts_missing_values)

    def warm_up(self) -> None:
        """Rank an empty item, so that the first request need not wait for compiling and loading."""
        self.rank([self._empty()], 1, is_explainable(self.model.ranker))

    def _empty(self) -> Any:
        encoder = self.model.preparation.encoder
        if encoder is not None:
            return dict.fromkeys(column.name for column in encoder.columns)
        return dict.fromkeys(self.model.preparation.names or (), 0.0)

    @cached_property
    def _tells_chances(self) -> bool:
        return self.model.has_chances

    def about(self) -> dict[str, Any]:
        """Describe the model: what it takes, and what it ranks."""
        ranker, preparation = self.model.ranker, self.model.preparation
        columns = None
        if preparation.encoder is not None:
            columns = [_column(column) for column in preparation.encoder.columns]
        return {
            "ranker": type(ranker).__name__,
            "labels": [_plain(label) for label in self.model.classes.tolist()],
            "n_features": preparation.n_features,
            "columns": columns,
            "features": None if preparation.names is None else list(preparation.names),
            "explains": is_explainable(ranker),
            "scores_are_log_odds": bool(ranker.estimates_marginals),
            "probabilities": self._tells_chances,
            "limits": {
                "rows": self.limits.rows,
                "bytes": self.limits.bytes,
                "labels": self.limits.labels,
            },
        }

    def is_quick(self) -> bool:
        """Tell whether an item is ranked so quickly that others need not be let in between."""
        begun = time.perf_counter()
        self.rank([self._empty()], 1, False)
        return time.perf_counter() - begun < QUICK_SECONDS

    def rank(
        self, items: list[Any], top: int, explain: Any, sets: Any = None
    ) -> list[dict[str, Any]]:
        """Return the best labels of each item, their scores, and if wanted the reasons.

        `explain` is False, True for the first label above the second, or a pair of labels; `sets`
        says how to choose a set by the probabilities, where the model has them.
        """
        if not 1 <= len(items) <= self.limits.rows:
            raise ItemError(
                f"a request must have from 1 to {self.limits.rows} items; got {len(items)}"
            )
        n_labels = len(items) * min(top, len(self.model.classes))
        if n_labels > self.limits.labels:
            raise ItemError(
                f"an answer must have at most {self.limits.labels} labels; {len(items)} items with "
                f"{n_labels // len(items)} each have {n_labels}: lower top, or send fewer items"
            )
        if explain is not False:
            self._check_explain(explain, len(items))
        if sets is not None:
            self._check_sets(sets)
        try:
            return self._ranked(self._read(items), top, explain, sets)
        except RowError as error:
            raise ItemError(f"items[{error.row}] {error.problem}") from None

    def rank_to_json(self, items: list[Any], top: int, explain: Any, sets: Any = None) -> bytes:
        """Return the same as JSON: for many labels writing it takes longer than ranking."""
        rankings = self.rank(items, top, explain, sets)
        try:
            text = json.dumps({"rankings": rankings}, ensure_ascii=False, allow_nan=False)
        except ValueError:
            problem = "the reasons are beyond what numbers can hold; check the items"
            raise ItemError(problem) from None
        return text.encode("utf-8", "backslashreplace")

    def _ranked(self, X: Any, top: int, explain: Any, sets: str | None) -> list[dict[str, Any]]:
        rankings: list[dict[str, Any]] = []
        # What is read from one item is finite and in order.
        options: dict[str, Any] = {"chances": self._tells_chances, "checked": X.shape[0] == 1}
        for row, labels, scores, chances, chosen in self.model.answers(
            X, top, sets=sets, **options
        ):
            ranking: dict[str, Any] = {"labels": list(map(_plain, labels)), "scores": scores}
            if chances is not None:
                ranking["probabilities"] = chances
            if chosen is not None:
                ranking["set"] = list(map(_plain, chosen))
            if explain and (why := self._reasons(X[[row]], explain)) is not None:
                ranking["why"] = why
            rankings.append(ranking)
        return rankings

    def _check_sets(self, sets: Any) -> None:
        if not isinstance(sets, str) or sets not in SETS:
            raise ItemError(f"sets must be one of {', '.join(SETS)}, or null")
        if not self._tells_chances:
            raise ItemError(
                "sets are chosen by probabilities, and the model has none: fit it with --calibrate"
            )

    def _check_explain(self, explain: Any, n_items: int) -> None:
        if explain is not True and not (isinstance(explain, list) and len(explain) == 2):
            raise ItemError("explain must be true, false or a list of two labels")
        if not is_explainable(self.model.ranker):
            name = type(self.model.ranker).__name__
            raise ItemError(f"explain is for linear and boosted rankers; the model is a {name}")
        if n_items > MOST_EXPLAINED:
            raise ItemError(f"explain is for at most {MOST_EXPLAINED} items; got {n_items}")

    def _reasons(self, x: Any, explain: Any) -> dict[str, Any] | None:
        pair = explain
        if explain is True:
            pair = next(self.model.rankings(x, 2))[1]
            if len(pair) < 2:
                return None
        first, second = (self._label(name) for name in pair)
        lines = reasons(self.model, x, first, second, REASONS)
        for line in lines:
            if line["value"] == "":
                line["value"] = None
        return {"above": _plain(first), "below": _plain(second), "reasons": lines}

    def _label(self, name: Any) -> Any:
        label = self.model.find_label(str(name))
        if label not in self.model.classes.tolist():
            raise ItemError(f"explain names the label {name!r}, which the model does not have")
        return label


def _column(column: Any) -> dict[str, Any]:
    described = {"name": column.name, "kind": column.kind}
    if isinstance(column, CategoryColumn):
        described["kind"] = CategoryColumn.kind
        described["values"] = list(column.values[:_CHOICES_SHOWN])
    return described


def _plain(label: Any) -> Any:
    return label if isinstance(label, str | int | float | bool) else str(label)
