"""Do univariate losses rank better than pairwise ones, as the sample grows?"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from deltarank.datasets import SyntheticModel
from deltarank.metrics import rank_loss
from deltarank.paper.experiments import Experiment, Job, Row
from deltarank.paper.experiments.algorithms import ALGORITHMS, RIVALS
from deltarank.paper.experiments.figure1_findings import findings
from deltarank.paper.experiments.figure1_limits import MINIMISERS, floor, limit
from deltarank.paper.experiments.figure1_tables import BAYES, CASES, CURVES, tables, with_regret
from deltarank.paper.experiments.presets import Preset
from deltarank.paper.report.curves import draw_curves
from deltarank.recipes import Tuning

# What a stream of random numbers is for; the first part of its key beside the model.
MODEL, TEST, TRAINING = range(3)
# How streams are keyed: part of every job, so that rows of another way are not taken for these.
SEEDING = "spawned"
# Stumps have every threshold, as in Weka and BoosTexter: with 256 bins WBR-AB ranks better than the
# paper's algorithm. That takes several times as long, so that grids are walked only until five
# times the best number brings nothing better.
EXACT = {"bins": None, "patience": 5.0}
BOOSTED = ("AB.MR", "WBR-AB", "AB.MH")


def jobs(preset: Preset) -> list[Job]:
    """List one job per ranker and training set, and for each model its Bayes ranker and limits."""
    common = {
        "seeding": SEEDING,
        "n_labels": preset.n_labels,
        "noise": preset.noise,
        "n_test": preset.n_test,
        **EXACT,
        **preset.tuning(),
    }
    all_jobs = []
    for case in CASES:
        for model in range(preset.n_models):
            here = {"case": case, "model": model}
            all_jobs.append({**here, "n_rows": 0, "training_set": 0, "algorithm": BAYES, **common})
            all_jobs += [
                {**here, "n_rows": preset.n_limit, "training_set": 0, "algorithm": name, **common}
                for name in MINIMISERS
            ]
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


def model_of(case: str, model: int, n_labels: int, noise: float, seed: int) -> SyntheticModel:
    """Return a model, always the same one; its directions do not depend on the case."""
    return SyntheticModel.random(
        n_labels,
        dependent=case == "dependent",
        noise=noise,
        random_state=stream(seed, model, MODEL),
    )


@lru_cache(maxsize=64)
def world(case: str, model: int, n_labels: int, noise: float, n_test: int, seed: int) -> World:
    """Return a model with its test rows."""
    drawn = model_of(case, model, n_labels, noise, seed)
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
    bins: int | None,
    patience: float,
    **tuning: Any,
) -> Row:
    """Tune and fit one ranker on one training set; measure it on the model's test rows."""
    if seeding != SEEDING:
        raise ValueError(f"seeding must be {SEEDING!r}, the only way there is; got {seeding!r}")
    here = world(case, model, n_labels, noise, n_test, seed)
    if algorithm == BAYES:
        risk = here.model.bayes_risk()
        loss = rank_loss(here.Y, here.model.bayes_scores(here.X))
        bayes = {"loss": loss, "risk": risk.value, "risk_error": risk.error}
        return {**bayes, "floor": floor(here.model)}
    generator = stream(seed, model, TRAINING, n_rows, training_set)
    if algorithm in MINIMISERS:
        return limit(here.model, algorithm, n_rows, generator)
    X, Y = here.model.sample(n_rows, random_state=generator)
    entry = ALGORITHMS[algorithm]
    ranker = entry.make(Tuning(seed=seed, **tuning))
    if algorithm in BOOSTED:
        ranker.set_params(ranker__bins=bins, patience=patience)
    ranker.fit(X, Y)
    return {"loss": rank_loss(here.Y, ranker.decision_function(here.X)), **entry.chosen(ranker)}


def cost(job: Job) -> float:
    """Pairwise methods and boosting take long on many rows."""
    if job["algorithm"] in MINIMISERS:
        return 5.0
    slow = {"AB.MR": 10.0, "AB.MH": 5.0, "LLLR": 5.0, "WBR-AB": 1.5}
    return 1.0 + slow.get(job["algorithm"], 0.3) * job["n_rows"] / 500


def figures(rows: list[Row]) -> dict[str, Any]:
    """Draw the four panels of the paper, and under each the regrets and their limits."""
    return {"figure1": draw_curves(with_regret(rows), rows, CASES, RIVALS, CURVES)}


EXPERIMENT = Experiment("figure1", __doc__, jobs, answer, tables, figures, findings, cost)
