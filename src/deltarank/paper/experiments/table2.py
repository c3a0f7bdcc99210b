"""How do the algorithms rank on the paper's data sets, beside what it printed?"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from deltarank.core.statistics import paired_bootstrap
from deltarank.datasets import CATALOGUE, Split, load
from deltarank.datasets.fetch import is_here
from deltarank.metrics import rank_loss
from deltarank.paper.experiments import Experiment, Job, Row, Table
from deltarank.paper.experiments.algorithms import ALGORITHMS, RIVALS
from deltarank.paper.experiments.presets import MOST_ROUNDS, Preset
from deltarank.paper.experiments.published import TABLE2
from deltarank.recipes import Tuning

COLUMNS = ("AB.MR", "WBR-AB", "LLLR", "WBR-LR", "AB.MH", "BR", "WBR-KLR")
# Linear losses since: BR is u1 of Wu et al. (2021), WBR-LR is u2.
SUCCESSORS = ("BR", "WBR-LR", "u3", "u4", "balance", "pairwise")
LATER = tuple(name for name in SUCCESSORS if name not in COLUMNS)
VARIANTS = ("raw", "standardised")
# Stumps do not depend on the scale of features; the kernel needs standardised ones.
ONLY = {name: "raw" for name in COLUMNS if not ALGORITHMS[name].recipe.scale}
ONLY["WBR-KLR"] = "standardised"


def jobs(preset: Preset) -> list[Job]:
    """List one job per algorithm, data set, features and split, for the data sets at hand."""
    all_jobs = []
    for name in preset.data_sets:
        if not is_here(CATALOGUE[name]):
            continue
        n_splits = preset.n_splits if CATALOGUE[name].split == "random" else 1
        all_jobs += [
            {"data_set": name, "features": variant, "split": split, "algorithm": algorithm,
             **preset.tuning(name)}
            for split in range(n_splits)
            for algorithm in (*COLUMNS, *LATER)
            for variant in VARIANTS
            if ONLY.get(algorithm, variant) == variant
        ]  # fmt: skip
    return all_jobs


@lru_cache(maxsize=4)
def data(name: str, features: str, split: int) -> Split:
    """Return a data set; features are standardised by the training rows."""
    loaded = load(name, random_state=split)
    if features == "raw":
        return loaded
    scaler = StandardScaler(with_mean=not sparse.issparse(loaded.X_train)).fit(loaded.X_train)
    X_train, X_test = scaler.transform(loaded.X_train), scaler.transform(loaded.X_test)
    return Split(X_train, loaded.Y_train, X_test, loaded.Y_test)


def answer(
    data_set: str,
    features: str,
    split: int,
    algorithm: str,
    **tuning: Any,
) -> Row:
    """Tune and fit on the training rows; measure every test row."""
    here = data(data_set, features, split)
    entry = ALGORITHMS[algorithm]
    ranker = entry.make(Tuning(**tuning)).fit(here.X_train, here.Y_train)
    scores = ranker.decision_function(here.X_test)
    losses = np.asarray(rank_loss(here.Y_test, scores, per_instance=True))
    return {
        "loss": float(np.mean(losses)),
        **entry.chosen(ranker),
        "row_losses": [round(float(loss), 5) for loss in losses],
    }


def cost(job: Job) -> float:
    """Mediamill is a hundred times the others, and grids of rounds are long."""
    size = {"mediamill": 100.0}.get(job["data_set"], 1.0)
    return size * {"AB.MR": 20.0, "AB.MH": 10.0, "LLLR": 20.0, "WBR-AB": 4.0}.get(
        job["algorithm"], 2.0
    )


def note(rows: list[Row]) -> str:
    """Return what must be said of the data sets that were run, and of no others."""
    names = list(dict.fromkeys(row["data_set"] for row in rows))
    shuffled = [name for name in names if CATALOGUE[name].split == "random"]
    ended = [f"{MOST_ROUNDS[name]} on {name}" for name in names if name in MOST_ROUNDS]
    sentences = [
        "Rank loss of test rows on the original split"
        + (f" ({', '.join(shuffled)}, without one: mean over random splits, with the standard "
           "deviation)." if shuffled else "."),
        "Parameters are chosen by cross-validation inside the training rows.",
        "Linear rankers see raw and standardised features (sparse ones are scaled, not centred), "
        "stumps do not tell them apart, and the kernel takes standardised ones.",
    ]  # fmt: skip
    if ended:
        sentences.append(
            f"Grids of rounds and updates end at {' and '.join(ended)}, where they take long."
        )
    return " ".join(sentences)


def tables(rows: list[Row]) -> list[Table]:
    """Put our losses beside the paper's, and say which of the rivals wins and by how much."""
    if not rows:
        return []
    losses = list(_loss_rows(rows, COLUMNS))
    return [
        Table("Table 2: rank loss, the paper's in brackets", losses, note(rows)),
        Table(
            "Differences on the same test rows, with 95 % bootstrap intervals",
            list(_rival_rows(rows)),
            "Positive means that the second ranker is better. The better variant by its "
            "cross-validated choice is not known to the test rows, so both are shown.",
        ),
        Table(
            "Linear losses since: rank loss on the same test rows",
            list(_loss_rows(rows, SUCCESSORS)),
            "BR and WBR-LR are u1 and u2 of Wu et al. (2021); balance lies between WBR-LR and u3 "
            "and is chosen with C; pairwise is the pairwise logistic loss with a penalty.",
        ),
    ]


def _loss_rows(rows: list[Row], columns: Iterable[str]) -> Iterable[Row]:
    for name in dict.fromkeys(row["data_set"] for row in rows):
        for variant in VARIANTS:
            line: Row = {"data set": name, "features": variant}
            for algorithm in columns:
                shown = ONLY.get(algorithm, variant)
                losses = [r["loss"] for r in _of(rows, name, shown, algorithm)]
                line[algorithm] = _cell(
                    losses, TABLE2.get(name, {}).get(algorithm), shown == variant
                )
            yield line


def _cell(losses: list[float], printed: float | None, applies: bool) -> str:
    if not losses or not applies:
        return ""
    text = f"{np.mean(losses):.4f}"
    if len(losses) > 1:
        text += f" ± {np.std(losses, ddof=1):.4f}"
    return text if printed is None else f"{text} ({printed:.4f})"


def _rival_rows(rows: list[Row]) -> Iterable[Row]:
    pairs = [*RIVALS.values(), ("AB.MR", "AB.MH"), ("BR", "WBR-LR")]
    pairs += [(name, "WBR-LR") for name in (*LATER, "WBR-KLR")]
    for name in dict.fromkeys(row["data_set"] for row in rows):
        for variant in VARIANTS:
            for first, second in pairs:
                one, other = (_of(rows, name, variant, a) for a in (first, second))
                if not one or not other:
                    continue
                gap = paired_bootstrap(_row_losses(one), _row_losses(other))
                yield {
                    "data set": name,
                    "features": variant if first not in ONLY else "either",
                    "pair": f"{first} - {second}",
                    "difference": gap.mean,
                    "from": gap.low,
                    "to": gap.high,
                    "better": second if gap.low > 0 else first if gap.high < 0 else "-",
                }


def _of(rows: list[Row], name: str, variant: str, algorithm: str) -> list[Row]:
    wanted = (name, variant, algorithm)
    return [r for r in rows if (r["data_set"], r["features"], r["algorithm"]) == wanted]


def _row_losses(rows: list[Row]) -> Any:
    return np.concatenate([row["row_losses"] for row in rows])


def figures(rows: list[Row]) -> dict[str, Any]:
    """Draw each loss with its 95 % bootstrap interval over test rows, beside what was printed."""
    from deltarank.paper.report.losses import Dot, draw_losses

    panels: dict[str, list[Dot]] = {}
    for name in dict.fromkeys(row["data_set"] for row in rows):
        for algorithm in (*COLUMNS, *LATER):
            for variant in VARIANTS:
                if found := _of(rows, name, variant, algorithm):
                    interval = paired_bootstrap(_row_losses(found), 0.0)
                    printed = TABLE2.get(name, {}).get(algorithm)
                    dot = Dot(algorithm, variant, interval, printed)
                    panels.setdefault(name, []).append(dot)
    return {"table2": draw_losses(panels, VARIANTS)} if panels else {}


def findings(rows: list[Row]) -> list[str]:
    """Say where we are below the paper's losses, and where not."""
    names = [name for name in dict.fromkeys(r["data_set"] for r in rows) if name in TABLE2]
    if not names:
        return []
    sentences = []
    for algorithm in ("AB.MR", "WBR-AB", "LLLR", "WBR-LR"):
        gaps = {name: _best(rows, name, algorithm) - TABLE2[name][algorithm] for name in names}
        near = [name for name in names if gaps[name] <= 0.005]
        far = ", ".join(f"{name} {gaps[name]:+.4f}" for name in names if name not in near)
        sentences.append(
            f"{algorithm}: within .005 of the paper's loss, or below it, on {len(near)} of "
            f"{len(names)} data sets in the better variant" + (f"; not on {far}." if far else ".")
        )
    least = {name: min(TABLE2[name].values()) for name in names}
    beaten = [name for name in names if _best(rows, name, "WBR-KLR") < least[name]]
    sentences.append(
        f"WBR-KLR is below the best of the paper's four on {len(beaten)} of {len(names)}: "
        + ", ".join(f"{n} {_best(rows, n, 'WBR-KLR'):.4f} ({least[n]:.4f})" for n in names)
        + "."
    )
    return sentences


def _best(rows: list[Row], name: str, algorithm: str) -> float:
    means = [
        np.mean([row["loss"] for row in matching])
        for variant in VARIANTS
        if (matching := _of(rows, name, variant, algorithm))
    ]
    return float(min(means))


EXPERIMENT = Experiment("table2", __doc__, jobs, answer, tables, figures, findings, cost)
