"""The search for the width of a Gaussian kernel and the number of its landmarks."""

from typing import Any, NamedTuple

from deltarank.core.chunks import is_chunked, map_aligned
from deltarank.core.progress import Step, progress
from deltarank.linear.logistic import LogisticRanker
from deltarank.linear.logistic_cv import LogisticRankerCV
from deltarank.linear.nystrom import NystromMap

# Neighbours in the grid of widths differ by this factor.
WIDTH_FACTOR = 2.0
# The climb ends after this many factors: no data set tried wants a width further from the scale.
FURTHEST = 6
# Guesses for the progress bar: the share of the remaining work that trying one more width takes,
# and one more number of landmarks.
SHARE_OF_A_WIDTH, SHARE_OF_MORE = 0.2, 0.5


class _Try(NamedTuple):
    score: float
    C: float


class KernelSearch:
    """Cross-validated scores of kernels, each computed once, for a `KernelLogisticRanker`."""

    def __init__(
        self,
        ranker: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        rows: Any,
        cv: Any,
        done: Step,
    ) -> None:
        self.done = done
        self.ranker, self.X, self.y, self.sample_weight = ranker, X, y, sample_weight
        self.rows, self.cv = rows, cv
        self.share = SHARE_OF_A_WIDTH
        self.seen: dict[tuple[float, int], _Try] = {}

    @property
    def tried(self) -> list[dict[str, Any]]:
        """What was tried, as rows of a table."""
        return [
            {"gamma": gamma, "n_landmarks": count, "C": attempt.C, "score": attempt.score}
            for (gamma, count), attempt in self.seen.items()
        ]

    def map(self, gamma: float, count: int) -> NystromMap:
        """Return the map of the first `count` landmarks."""
        return NystromMap.fitted(self.rows[:count], gamma)

    def final(self, feature_map: NystromMap, C: float) -> LogisticRanker:
        """Fit all rows."""
        ranker = LogisticRanker(C=C, tol=self.ranker.tol, **self._settings("final"))
        self.done.each = self.done.left
        with progress("fitting the kernel", 2) as done:
            done.each = 1
            return ranker.fit(self._mapped(feature_map), self.y, self.sample_weight)

    def score(self, gamma: float, count: int) -> float:
        """Return the best mean score over C on held-out rows."""
        return self._try(gamma, count).score

    def best_penalty(self, gamma: float, count: int) -> float:
        """Return the C that has it."""
        return self._try(gamma, count).C

    def _try(self, gamma: float, count: int) -> _Try:
        if (gamma, count) not in self.seen:
            self.done.each = self.share * self.done.left
            self.seen[gamma, count] = self._cross_validated(gamma, count)
        return self.seen[gamma, count]

    def _cross_validated(self, gamma: float, count: int) -> _Try:
        ranker = self.ranker
        with progress("trying a kernel", 4) as done:
            done.each = 1
            features = self._mapped(self.map(gamma, count))
            done.each = 3
            search = LogisticRankerCV(
                Cs=None if ranker.C is None else [ranker.C],
                cv=self.cv,
                scoring=ranker.scoring,
                # The fit after the search goes unused.
                tol=1.0,
                random_state=0,
                **self._settings(f"gamma={gamma:g}, n_landmarks={count}"),
            ).fit(features, self.y, self.sample_weight)
        return _Try(search.best_score_, search.C_)

    def _settings(self, name: str) -> dict[str, Any]:
        """Return the options that every fit has, with a folder of its own for checkpoints."""
        names = ("weight", "balance", "unknown", "max_iter", "device", "n_jobs", "checkpoint")
        settings = {option: getattr(self.ranker, option) for option in names}
        if settings["checkpoint"] is not None:
            settings["checkpoint"] = f"{settings['checkpoint']}/{name}"
        return settings

    def _mapped(self, feature_map: NystromMap) -> Any:
        """Return all rows mapped, wherever they are."""
        if not is_chunked(self.X):
            return feature_map(self.X)
        n_columns = feature_map.whitening.shape[1]
        options = {"n_columns": n_columns, "dtype": feature_map.whitening.dtype}
        return map_aligned(feature_map.__call__, (self.X, "X"), **options)

    def climb(self, start: float, count: int) -> float:
        """Return the best width on a grid about the start: go on while it gets better."""
        best = start
        for factor in (WIDTH_FACTOR, 1 / WIDTH_FACTOR):
            for power in range(1, FURTHEST + 1):
                gamma = start * factor**power
                if self.score(gamma, count) <= self.score(best, count):
                    break
                best = gamma
            if best != start:
                break
        return best
