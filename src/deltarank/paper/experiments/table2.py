"""How do the algorithms rank on the paper's data sets, beside what it printed?"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from deltarank.core.statistics import Interval, paired_bootstrap, t_test
from deltarank.datasets import CATALOGUE, Split, load
from deltarank.datasets.fetch import is_here
from deltarank.metrics import rank_loss
from deltarank.paper.experiments import Experiment, Job, Row, Table
from deltarank.paper.experiments.algorithms import ALGORITHMS, RIVALS, grid_of
from deltarank.paper.experiments.presets import MOST_ROUNDS, Preset
from deltarank.paper.experiments.published import TABLE2
from deltarank.recipes import Tuning

COLUMNS = ("AB.MR", "WBR-AB", "LLLR", "WBR-LR", "AB.MH", "BR", "WBR-KLR", "WBR-GT")
# Linear losses since: BR is u1 of Wu et al. (2021), WBR-LR is u2.
SUCCESSORS = ("BR", "WBR-LR", "u3", "u4", "balance", "pairwise")
LATER = tuple(name for name in SUCCESSORS if name not in COLUMNS)
VARIANTS = ("raw", "standardised")
# Stumps and trees do not depend on the scale of features; the kernel needs standardised ones.
ONLY = {name: "raw" for name in COLUMNS if not ALGORITHMS[name].recipe.scale}
ONLY["WBR-KLR"] = "standardised"
# Their one variant stands beside either variant of others.
NON_LINEAR = ("WBR-KLR", "WBR-GT")
# Neighbouring test rows of mediamill are alike: differences of losses have a lag-1 correlation of
# up to .29, and none beyond some 20 rows. Rows of the other sets show none.
BLOCKS = {"mediamill": 50}


def jobs(preset: Preset) -> list[Job]:
    """List one job per algorithm, data set, features and split, for the data sets at hand."""
    all_jobs = []
    for name in preset.data_sets:
        if not is_here(CATALOGUE[name]):
            continue
        n_splits = preset.n_splits if CATALOGUE[name].split == "random" else 1
        all_jobs += [
            {"data_set": name, "features": variant, "split": split, "algorithm": algorithm,
             **preset.tuning(name, algorithm)}
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
        "stumps and trees do not tell them apart, and the kernel takes standardised ones. Stumps "
        "have at most 256 thresholds a feature.",
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
            "Differences on the same test rows, with 95 % intervals",
            list(_rival_rows(rows)),
            "Positive means that the second ranker is better. Intervals are bootstrapped over test "
            "rows, on mediamill over blocks of 50 neighbours; random splits share rows, so those "
            "of image are Student's with the variance corrected for that (Nadeau and Bengio). They "
            "are not adjusted for their number. Both variants of the features are shown: none is "
            "chosen by its test loss.",
        ),
        Table(
            "Linear losses since: rank loss on the same test rows",
            list(_loss_rows(rows, SUCCESSORS)),
            "BR and WBR-LR are u1 and u2 of Wu et al. (2021); balance lies between WBR-LR and u3 "
            "and is chosen with C; pairwise is the pairwise logistic loss with a penalty.",
        ),
        *_end_tables(rows),
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
    pairs += [(name, "WBR-LR") for name in LATER]
    rivals = ("AB.MR", "WBR-AB", "LLLR", "WBR-LR")
    pairs += [(name, "WBR-KLR") for name in rivals]
    pairs += [(name, "WBR-GT") for name in (*rivals, "WBR-KLR")]
    for name in dict.fromkeys(row["data_set"] for row in rows):
        for variant in VARIANTS:
            for first, second in pairs:
                # Stumps do not tell variants apart, so their one variant is everybody's.
                others = [a for a in (first, second) if a not in NON_LINEAR]
                fits = {ONLY.get(a, variant) for a in others or (first,)}
                one, other = (_of(rows, name, ONLY.get(a, variant), a) for a in (first, second))
                if not one or not other or variant not in fits:
                    continue
                gap = difference(name, one, other)
                yield {
                    "data set": name,
                    "features": variant if first not in ONLY else "either",
                    "pair": f"{first} - {second}",
                    "difference": gap.mean,
                    "from": gap.low,
                    "to": gap.high,
                    "better": second if gap.low > 0 else first if gap.high < 0 else "-",
                }


def difference(name: str, one: list[Row], other: list[Row] | None = None) -> Interval:
    """Return the mean loss of a ranker on a data set, less another's, and its interval of 95 %."""
    others = other or [{"loss": 0.0, "row_losses": 0.0}] * len(one)
    if len(one) > 1:
        sizes = CATALOGUE[name]
        gaps = [a["loss"] - b["loss"] for a, b in zip(one, others, strict=True)]
        test = t_test(gaps, overlap=sizes.n_test / sizes.n_train)
        return Interval(test.mean, test.low, test.high)
    losses = (row["row_losses"] for row in (*one, *others))
    return paired_bootstrap(*losses, block=BLOCKS.get(name, 1))


def _end_tables(rows: list[Row]) -> list[Table]:
    lines = []
    for name, variant, algorithm in dict.fromkeys(
        (row["data_set"], row["features"], row["algorithm"]) for row in rows
    ):
        matching = _of(rows, name, variant, algorithm)
        for end, place in (("low", 0), ("high", -1)):
            share = np.mean([row["chosen"] == grid_of(row)[place] for row in matching])
            if share:
                lines.append(
                    {
                        "data set": name,
                        "features": "either" if variant == ONLY.get(algorithm) else variant,
                        "algorithm": algorithm,
                        "end": end,
                        "value": float(grid_of(matching[0])[place]),
                        "share of splits": float(share),
                    }
                )
    note = "There a longer grid might do better, or differently."
    return [Table("Choices at an end of their grid", lines, note)] if lines else []


def _of(rows: list[Row], name: str, variant: str, algorithm: str) -> list[Row]:
    wanted = (name, variant, algorithm)
    return [r for r in rows if (r["data_set"], r["features"], r["algorithm"]) == wanted]


def figures(rows: list[Row]) -> dict[str, Any]:
    """Draw each loss with its 95 % interval, beside what was printed."""
    from deltarank.paper.report.losses import Dot, draw_losses

    panels: dict[str, list[Dot]] = {}
    for name in dict.fromkeys(row["data_set"] for row in rows):
        for algorithm in (*COLUMNS, *LATER):
            for variant in VARIANTS:
                if matching := _of(rows, name, variant, algorithm):
                    interval = difference(name, matching)
                    printed = TABLE2.get(name, {}).get(algorithm)
                    dot = Dot(algorithm, variant, interval, printed)
                    panels.setdefault(name, []).append(dot)
    return {"table2": draw_losses(panels, VARIANTS)} if panels else {}


def findings(rows: list[Row]) -> list[str]:
    """Say where we are below the paper's losses, and where not, with each kind of features."""
    rows = [row for row in rows if row["data_set"] in TABLE2]
    names = list(dict.fromkeys(row["data_set"] for row in rows))
    if not names:
        return []
    sentences = []
    for algorithm in ("AB.MR", "WBR-AB", "LLLR", "WBR-LR"):
        for variant in [ONLY[algorithm]] if algorithm in ONLY else VARIANTS:
            losses = _losses(rows, variant, algorithm)
            gaps = {name: loss - TABLE2[name][algorithm] for name, loss in losses.items()}
            near = [name for name in gaps if gaps[name] <= 0.005]
            far = ", ".join(f"{name} {gaps[name]:+.4f}" for name in gaps if name not in near)
            which = "" if algorithm in ONLY else f" ({variant} features)"
            sentences.append(
                f"{algorithm}{which}: within .005 of the paper's loss, or below it, on {len(near)} "
                f"of {len(gaps)} data sets" + (f"; not on {far}." if far else ".")
            )
    return [*sentences, *_kernel_findings(rows, names)]


def _kernel_findings(rows: list[Row], names: list[str]) -> list[str]:
    """Compare WBR-KLR with what the paper printed, and with WBR-LR on the same rows, in pairs."""
    beside, paired = [], []
    for name in names:
        kernel, linear = (_of(rows, name, ONLY["WBR-KLR"], a) for a in ("WBR-KLR", "WBR-LR"))
        if not kernel:
            continue
        of_kernel, least = difference(name, kernel), min(TABLE2[name].values())
        beside.append(f"{name} {_with_ends(of_kernel)} against {least:.4f}")
        if linear:
            paired.append(f"{name} {_with_ends(difference(name, linear, kernel))}")
    heads = {
        "WBR-KLR beside the least loss of the paper's four, which cannot be paired": beside,
        "WBR-LR less WBR-KLR on standardised features, paired": paired,
    }
    return [
        f"{head} (95 % intervals): {', '.join(listed)}." for head, listed in heads.items() if listed
    ]


def _with_ends(interval: Interval) -> str:
    return f"{interval.mean:.4f} ({interval.low:.4f} to {interval.high:.4f})"


def _losses(rows: list[Row], variant: str, algorithm: str) -> dict[str, float]:
    """Return the mean loss of a ranker on each data set it was run on."""
    matching = [r for r in rows if (r["features"], r["algorithm"]) == (variant, algorithm)]
    return {
        name: float(np.mean([row["loss"] for row in matching if row["data_set"] == name]))
        for name in dict.fromkeys(row["data_set"] for row in matching)
    }


EXPERIMENT = Experiment("table2", __doc__, jobs, answer, tables, figures, findings, cost)
