"""Why does pairwise boosting rank better than univariate boosting here, and not in the paper?"""

from typing import Any

from deltarank.paper.experiments import Experiment, Job, Row
from deltarank.paper.experiments.boosting_arms import ARMS
from deltarank.paper.experiments.boosting_tables import findings, tables
from deltarank.paper.experiments.figure1 import SEEDING, TRAINING, model_of, stream
from deltarank.paper.experiments.figure1_tables import CASES
from deltarank.paper.experiments.presets import Preset
from deltarank.paper.report.arms import draw_arms

# Draws behind the best order of a model. The regret of the ranker that they give, by which a row
# may be off, is about 2e-6.
N_DRAWS = 16_384


def jobs(preset: Preset) -> list[Job]:
    """List one job per arm, model and every second size of a training set, the largest first."""
    common = {
        "seeding": SEEDING,
        "n_labels": preset.n_labels,
        "noise": preset.noise,
        "folds": preset.folds,
        "most rounds": preset.rounds[-1],
        "seed": preset.seed,
    }
    return [
        {"case": case, "model": model, "n_rows": n, "training_set": 0, "arm": arm, **common}
        for case in CASES
        for model in range(preset.n_models)
        for n in preset.sizes[::-2][:3]
        for arm in ARMS
    ]


def answer(**job: Any) -> Row:
    """Tune and fit one arm on one training set of Figure 1; integrate its regret over the disk."""
    seed, model = job["seed"], job["model"]
    here = model_of(job["case"], model, job["n_labels"], job["noise"], seed)
    generator = stream(seed, model, TRAINING, job["n_rows"], job["training_set"])
    X, Y = here.sample(job["n_rows"], random_state=generator)
    arm = ARMS[job["arm"]]
    searched = arm.search(job["most rounds"], job["folds"], seed).fit(X, Y)
    return {
        "regret": here.regret(searched.decision_function, n_draws=N_DRAWS),
        "chosen": int(searched.best_rounds_),
        "tried to": int(searched.cv_results_["param_rounds"][-1]),
        "at end": bool(searched.best_rounds_ == arm.grid(job["most rounds"])[-1]),
    }


def cost(job: Job) -> float:
    """Short steps take many rounds, and rounds time in proportion to the rows."""
    arm = ARMS[job["arm"]]
    dear = 1.0 if arm.shrinkage == 1 else 4.0
    return 0.5 + dear * (0.2 if arm.bins or arm.most else 1.0) * job["n_rows"] / 4000


def figures(rows: list[Row]) -> dict[str, Any]:
    """Draw the regret of every arm on the largest training sets."""
    n = max(row["n_rows"] for row in rows)
    return {"boosting": draw_arms([r for r in rows if r["n_rows"] == n], CASES, list(ARMS))}


EXPERIMENT = Experiment("boosting", __doc__, jobs, answer, tables, figures, findings, cost)
