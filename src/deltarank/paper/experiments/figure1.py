"""Do univariate losses rank better than pairwise ones, as the sample grows?"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from deltarank.core.statistics import clustered_error, wilcoxon_p
from deltarank.datasets import SyntheticModel
from deltarank.metrics import rank_loss
from deltarank.paper.experiments import Experiment, Job, Row, Table
from deltarank.paper.experiments.algorithms import ALGORITHMS, RIVALS
from deltarank.paper.experiments.presets import Preset
from deltarank.paper.report.curves import draw_curves
from deltarank.recipes import Tuning

CASES = ("independent", "dependent")
# The four of the paper, and two that separate what it leaves mixed: MH has the stumps of MR with
# the loss of WBR-AB, BR is WBR-LR without the weights.
CURVES = ("AB.MR", "WBR-AB", "AB.MH", "LLLR", "WBR-LR", "BR")
BAYES = "Bayes"
NOTE = (
    "Loss is the mean rank loss of test rows, regret the loss less that of the Bayes ranker on the "
    "same rows. Models differ far more than rankers do, so differences are paired by training set "
    "and their standard errors are taken over models."
)


# What a stream of random numbers is for; the first part of its key beside the model.
MODEL, TEST, TRAINING = range(3)
# How streams are keyed: part of every job, so that rows of another way are not taken for these.
SEEDING = "spawned"


def jobs(preset: Preset) -> list[Job]:
    """List one job per ranker and training set, and one per model for its Bayes ranker."""
    common = {
        "seeding": SEEDING,
        "n_labels": preset.n_labels,
        "noise": preset.noise,
        "n_test": preset.n_test,
        **preset.tuning(),
    }
    all_jobs = []
    for case in CASES:
        for model in range(preset.n_models):
            here = {"case": case, "model": model}
            all_jobs.append({**here, "n_rows": 0, "training_set": 0, "algorithm": BAYES, **common})
            all_jobs += [
                {**here, "n_rows": n, "training_set": i, "algorithm": algorithm, **common}
                for n in preset.sizes
                for i in range(preset.n_training_sets)
                for algorithm in CURVES
            ]
    return all_jobs


def stream(seed: int, model: int, *key: int) -> np.random.Generator:
    """Return the random numbers of a model for one purpose, independent of all others.

    A list such as ``[seed, model]`` will not do for a seed: trailing zeros do not change it.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(model, *key)))


class World(NamedTuple):
    """A model and its test rows."""

    model: SyntheticModel
    X: Any
    Y: Any


@lru_cache(maxsize=64)
def world(case: str, model: int, n_labels: int, noise: float, n_test: int, seed: int) -> World:
    """Return a model, always the same one; its directions do not depend on the case."""
    drawn = SyntheticModel.random(
        n_labels,
        dependent=case == "dependent",
        noise=noise,
        random_state=stream(seed, model, MODEL),
    )
    return World(drawn, *drawn.sample(n_test, random_state=stream(seed, model, TEST)))


def answer(
    case: str,
    model: int,
    n_rows: int,
    training_set: int,
    algorithm: str,
    n_labels: int,
    noise: float,
    n_test: int,
    seed: int,
    seeding: str,
    **tuning: Any,
) -> Row:
    """Tune and fit one ranker on one training set; measure it on the model's test rows."""
    if seeding != SEEDING:
        raise ValueError(f"seeding must be {SEEDING!r}, the only way there is; got {seeding!r}")
    here = world(case, model, n_labels, noise, n_test, seed)
    if algorithm == BAYES:
        risk = here.model.bayes_risk()
        loss = rank_loss(here.Y, here.model.bayes_scores(here.X))
        return {"loss": loss, "risk": risk.value, "risk_error": risk.error}
    X, Y = here.model.sample(n_rows, stream(seed, model, TRAINING, n_rows, training_set))
    entry = ALGORITHMS[algorithm]
    ranker = entry.make(Tuning(seed=seed, **tuning)).fit(X, Y)
    return {"loss": rank_loss(here.Y, ranker.decision_function(here.X)), **entry.chosen(ranker)}


def cost(job: Job) -> float:
    """Pairwise methods and boosting take long on many rows."""
    slow = {"AB.MR": 10.0, "AB.MH": 5.0, "LLLR": 5.0, "WBR-AB": 1.5}
    return 1.0 + slow.get(job["algorithm"], 0.3) * job["n_rows"] / 500


def with_regret(rows: list[Row]) -> list[Row]:
    """Return the rows of rankers, each with its loss above the Bayes ranker's on the same rows."""
    least = {(r["case"], r["model"]): r["loss"] for r in rows if r["algorithm"] == BAYES}
    return [
        {**row, "regret": row["loss"] - least[row["case"], row["model"]]}
        for row in rows
        if row["algorithm"] != BAYES
    ]


def tables(rows: list[Row]) -> list[Table]:
    """Say what the curves show, and what the eye cannot see: paired differences."""
    return [
        Table("Figure 1 in numbers", list(_curve_rows(with_regret(rows))), NOTE),
        Table(
            "Pairwise less univariate, paired by training set",
            list(_difference_rows(with_regret(rows))),
            "Positive means that the univariate ranker is better. Wilcoxon's test is over the "
            "means of models.",
        ),
    ]


def _curve_rows(rows: list[Row]) -> Iterable[Row]:
    for case in CASES:
        for algorithm in CURVES:
            for n in sorted({row["n_rows"] for row in rows}):
                matching = _of(rows, case=case, algorithm=algorithm, n_rows=n)
                chosen = [row["chosen"] for row in matching]
                yield {
                    "case": case,
                    "algorithm": algorithm,
                    "n_rows": n,
                    "loss": float(np.mean([row["loss"] for row in matching])),
                    "regret": float(np.mean([row["regret"] for row in matching])),
                    "error": clustered_error(
                        [row["regret"] for row in matching], [row["model"] for row in matching]
                    ),
                    "median choice": float(np.median(chosen)),
                }


def _difference_rows(rows: list[Row]) -> Iterable[Row]:
    pairs = [*RIVALS.values(), ("AB.MR", "AB.MH"), ("BR", "WBR-LR")]
    for case in CASES:
        for first, second in pairs:
            for n in sorted({row["n_rows"] for row in rows}):
                gaps, models = paired_gaps(rows, case, n, first, second)
                by_model = [np.mean(gaps[models == model]) for model in np.unique(models)]
                yield {
                    "case": case,
                    "pair": f"{first} - {second}",
                    "n_rows": n,
                    "difference": float(gaps.mean()),
                    "error": clustered_error(gaps, models),
                    "p": wilcoxon_p(by_model, np.zeros(len(by_model))),
                }


def paired_gaps(rows: list[Row], case: str, n: int, first: str, second: str) -> Any:
    """Return the differences of losses on the same training sets, and the model of each."""
    one, other = (
        {(r["model"], r["training_set"]): r["loss"] for r in _of(rows, case=case, n_rows=n,
                                                                 algorithm=name)}
        for name in (first, second)
    )  # fmt: skip
    keys = sorted(one)
    return np.array([one[k] - other[k] for k in keys]), np.array([k[0] for k in keys])


def _of(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def figures(rows: list[Row]) -> dict[str, Any]:
    """Draw the four panels of the paper, and under each the regrets."""
    return {"figure1": draw_curves(with_regret(rows), rows, CASES, RIVALS, CURVES)}


# What the paper says of pairwise less univariate losses for large samples.
PAPER_SAYS = {
    ("independent", "exponential"): "better",
    ("dependent", "exponential"): "better",
    ("independent", "logistic"): "on par",
    ("dependent", "logistic"): "better",
}


def findings(rows: list[Row]) -> list[str]:
    """Say who wins on the largest training sets, beside what the paper says."""
    trained = with_regret(rows)
    n = max(row["n_rows"] for row in trained)
    sentences = []
    for (case, surrogate), claim in PAPER_SAYS.items():
        first, second = RIVALS[surrogate]
        gaps, models = paired_gaps(trained, case, n, first, second)
        mean, error = float(gaps.mean()), clustered_error(gaps, models)
        verdict = "on par" if not abs(mean) > 2 * error else "better" if mean > 0 else "worse"
        agrees = "as in the paper" if verdict == claim else f"in the paper {claim}"
        relation = {"on par": "on par with"}.get(verdict, f"{verdict} than")
        sentences.append(
            f"{case} labels, {surrogate} loss, {n} rows: the univariate {second} is {relation} the "
            f"pairwise {first} ({agrees}); difference {mean:+.5f}, standard error {error:.5f}."
        )
    return sentences + [_bayes_finding(rows, case) for case in CASES]


def _bayes_finding(rows: list[Row], case: str) -> str:
    """Say the Bayes ranker's loss on the test rows, and its risk over all rows."""
    matching = _of(rows, case=case, algorithm=BAYES)
    loss, risk = (float(np.mean([row[key] for row in matching])) for key in ("loss", "risk"))
    return f"{case} labels: the Bayes ranker has loss {loss:.4f} on the test rows, risk {risk:.4f}."


EXPERIMENT = Experiment("figure1", __doc__, jobs, answer, tables, figures, findings, cost)
