"""LogisticRanker on a CUDA device: time, distance from the floor, and distance from the minimum.

    python benchmarks/bench_device.py [mediamill] [cv] [boosting] [eurlex] [wide] [wider]

Data lie on the device before the clock starts. The gap is Newton's decrement in float64 at the
solution, for a few labels: an upper estimate of what is left of the objective there.
All but the last two need the real data sets in DELTARANK_DATA.
"""

import time
from functools import cache, partial

import numpy as np
from scipy import sparse

from deltarank import AdaBoostRanker, LogisticRankerCV, rank_loss
from deltarank.core.labels import LabelSets, label_sets
from deltarank.core.threads import n_threads
from deltarank.core.weights import instance_weights
from deltarank.linear.fit import SOLUTIONS, Options, solve_blocks
from deltarank.linear.objective import Objective
from deltarank.linear.rows.place import place
from deltarank.linear.solvers.precision import Precision
from measure import LeftOut, extra, row, run_sections, scaled, seconds, table
from real_data import load, standardized, unit_rows

torch = extra("torch", "torch")
DEVICE = torch.device("cuda")
TOL = 1e-6
HEAD = [
    "set-up",
    "solve",
    "fit",
    "passes: coarse + fine + exact + double",
    "floor fp32",
    "floor tf32",
    "worst gap",
]


def synchronised(function):
    """Return the seconds a function takes until the device is idle, and its result."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    result = function()
    torch.cuda.synchronize()
    return time.perf_counter() - began, result


@cache
def need_device():
    """Say what there is, or leave the section out."""
    if not torch.cuda.is_available():
        raise LeftOut("needs a CUDA device")
    print(f"\n{torch.cuda.get_device_name()}, {n_threads()} threads on the host")


@cache
def rate(tf32):
    """Measure floating-point operations a second of a large matrix product."""
    size = scaled(8192, 256)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a, b = torch.randn(2, size, size, device=DEVICE)
    a @ b
    spent, _ = synchronised(lambda: [a @ b for _ in range(5)])
    torch.backends.cuda.matmul.allow_tf32 = False
    found = 5 * 2 * size**3 / spent
    print(f"{'TF32' if tf32 else 'float32'}: {found / 1e12:.0f} TFLOP/s")
    return found


def fit(name, X, labels, C, repeats, n_checked=4):
    """Time a fit, and print it beside the least time of its matrix products."""
    rates = {tf32: rate(tf32) for tf32 in (False, True)}
    weights = np.asarray(instance_weights(labels.to_csr()), np.float64)
    best = None
    for _ in range(scaled(repeats)):
        placing, data = synchronised(lambda: _placed(X, labels, weights, C))
        work = _counted(data)
        solve = partial(solve_blocks, data, Options(TOL, 500), SOLUTIONS)
        solving, solution = synchronised(solve)
        if best is None or placing + solving < best[0] + best[1]:
            best = placing, solving, dict(work)
    placing, solving, work = best
    flops = 4.0 * sum(work.values()) * X.shape[1]
    busiest = np.argsort(-solution.n_iter)[: n_checked // 2]
    checked = np.append(busiest, np.linspace(0, labels.n_labels - 1, n_checked // 2).astype(int))
    linear = data.to_features(solution.point)
    gap = max(decrement(X, labels, weights, C, linear, int(label)) for label in checked)
    table(f"LogisticRanker on the device, {name}", HEAD)
    row(
        seconds(placing),
        seconds(solving),
        seconds(placing + solving),
        " + ".join(f"{cells / (X.shape[0] * labels.n_labels):.1f}" for cells in work.values()),
        seconds(flops / rates[False]),
        seconds(flops / rates[True]),
        f"{gap:.1e}",
    )
    print(
        f"\nnot converged: {(~solution.converged).sum()}, "
        f"largest n_iter {solution.n_iter.max()}, "
        f"memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB",
        flush=True,
    )
    torch.cuda.reset_peak_memory_stats()


def _placed(X, labels, weights, C):
    data = Objective(place(X, labels, weights, device="cuda"), C=C)
    if not data.rows.takes_newton:
        data.start(torch.arange(1, device=DEVICE))  # takes the sums of labels, once
    return data


def _counted(data):
    """Count the cells that passes evaluate by precision."""
    work, rows = dict.fromkeys(Precision, 0), data.rows
    evaluate, derivatives = rows.evaluate, rows.derivatives

    def counted_evaluate(coef, offset, problems, precision):
        work[precision] += rows.n_rows * len(problems)
        return evaluate(coef, offset, problems, precision)

    def counted_derivatives(points, problems, careful):
        work[Precision.EXACT] += rows.n_rows * len(problems)
        return derivatives(points, problems, careful)

    rows.evaluate, rows.derivatives = counted_evaluate, counted_derivatives
    return work


def decrement(X, labels, weights, C, linear, label):
    """Return half of g' H^-1 g in float64, relative to the objective, at a label's solution."""
    coef, intercept = (torch.as_tensor(part[label], device=DEVICE).double() for part in linear)
    relevant = torch.zeros(len(weights), dtype=torch.float64, device=DEVICE)
    relevant[torch.as_tensor(labels.rows[labels.members == label], device=DEVICE)] = 1
    mass = torch.as_tensor(weights, device=DEVICE)
    d = len(coef)
    gradient = torch.zeros(d + 1, dtype=torch.float64, device=DEVICE)
    hessian = torch.zeros(d + 1, d + 1, dtype=torch.float64, device=DEVICE)
    value = float((coef**2).sum()) / (2 * C)
    for begin in range(0, X.shape[0], 2**16):
        rows = slice(begin, begin + 2**16)
        x = X[rows].toarray() if sparse.issparse(X) else X[rows]
        x = torch.as_tensor(x, device=DEVICE).double()
        w, y = mass[rows], relevant[rows]
        scores = x @ coef + intercept
        value += float((w * (torch.nn.functional.softplus(scores) - y * scores)).sum())
        chances = scores.sigmoid()
        x = torch.column_stack([x, torch.ones_like(y)])
        gradient += (w * (chances - y)) @ x
        hessian += x.T @ (x * (w * chances * (1 - chances))[:, None])
    gradient[:-1] += coef / C
    hessian.diagonal()[:-1] += 1 / C
    step = torch.linalg.solve(hessian, gradient)
    return 0.5 * float(gradient @ step) / value


def made_up(n_rows, n_features, n_labels, seed=0):
    """Return features on the device and labels of a planted linear model, power-law frequent."""
    generator = torch.Generator(DEVICE).manual_seed(seed)
    mixing = torch.randn(n_features, n_features, device=DEVICE, generator=generator)
    mixing *= (torch.arange(1, n_features + 1, device=DEVICE) ** -0.5)[:, None]
    X = torch.empty(n_rows, n_features, device=DEVICE)
    truth = torch.randn(n_features, n_labels, device=DEVICE, generator=generator)
    frequency = 0.1 * torch.arange(1, n_labels + 1, device=DEVICE, dtype=torch.float64) ** -0.7
    threshold, rows, members = None, [], []
    for begin in range(0, n_rows, 2**15):
        size = min(2**15, n_rows - begin)
        noise = torch.randn(size, n_features, device=DEVICE, generator=generator)
        x = X[begin : begin + size] = noise @ mixing
        scores = x @ truth
        scores /= scores.std(dim=0)
        uniform = torch.rand(scores.shape, device=DEVICE, generator=generator).clamp(1e-6, 1 - 1e-6)
        scores += uniform.logit()
        if threshold is None:
            ranked = scores.sort(dim=0, descending=True).values
            place = (frequency * size).long().clamp(min=1)
            threshold = ranked.gather(0, place[None])[0]
        where = (scores > threshold).nonzero().cpu().numpy()
        rows.append(where[:, 0] + begin)
        members.append(where[:, 1])
    rows, members = np.concatenate(rows), np.concatenate(members)
    starts = np.searchsorted(rows, np.arange(n_rows + 1))
    return X, LabelSets(starts, members.astype(np.int32), n_labels)


def training_rows(name):
    """Return a data set's training rows, dense or CSR, and labels."""
    data = load(name)
    found = (unit_rows if sparse.issparse(data.X) else standardized)(data)
    return found.X, label_sets(found.Y)


def fit_real(name, C):
    X, labels = training_rows(name)
    need_device()
    if not sparse.issparse(X):
        X = torch.as_tensor(X, device=DEVICE)
    fit(f"{name} {X.shape[0]:,} x {X.shape[1]:,}, {labels.n_labels:,} labels", X, labels, C, 5)


def fit_made_up(n_labels, repeats):
    need_device()
    n_rows, n_features = scaled(1_000_000, 5000), scaled(1024, 64)
    X, labels = made_up(n_rows, n_features, n_labels)
    a_row = len(labels.members) / n_rows
    name = f"made up {n_rows:,} x {n_features:,}, {n_labels:,} labels, {a_row:.1f} a row"
    fit(name, X, labels, 1.0, repeats)


def mediamill():
    """101 labels, 120 dense features."""
    fit_real("mediamill", 1.0)


def cv():
    """Time the choice of C for mediamill, on the device and on this host's cores."""
    X, labels = training_rows("mediamill")
    need_device()
    Y = labels.to_csr()
    table("LogisticRankerCV, mediamill: 7 Cs x 5 folds + refit", ["device", "time", "C"])
    for device in ("cuda", "cuda", "cpu", "cpu"):
        ranker = LogisticRankerCV(cv=5, random_state=0, device=device)
        spent, _ = synchronised(lambda ranker=ranker: ranker.fit(X, Y))
        row(device, seconds(spent), f"{ranker.C_:g}")


def boosting(n_few=2, n_many=22):
    """Time a round of AdaBoost for all labels of mediamill, on the device and on the cores."""
    X, labels = training_rows("mediamill")
    need_device()
    Y = labels.to_csr()
    table("AdaBoostRanker, mediamill", ["device", "a round", f"rank loss after {n_many} rounds"])
    for device in ("cuda", "cpu"):
        spent = {n: [] for n in (n_few, n_many)}
        for n_stumps in (n_few, *(n_few, n_many) * scaled(3)):
            ranker = AdaBoostRanker(n_stumps=n_stumps, device=device)
            spent[n_stumps] += [synchronised(lambda ranker=ranker: ranker.fit(X, Y))[0]]
        a_round = (min(spent[n_many]) - min(spent[n_few])) / (n_many - n_few)
        loss = rank_loss(Y, ranker.decision_function(X))
        row(device, seconds(a_round), f"{loss:.5f}")


def eurlex():
    """3,993 labels, 5,000 sparse features."""
    fit_real("eurlex-4k", 10.0)


def wide():
    """Fit a million rows of 1,024 features, 1,000 labels."""
    fit_made_up(scaled(1_000, 50), 3)


def wider():
    """Fit a million rows of 1,024 features, 10,000 labels."""
    fit_made_up(scaled(10_000, 100), 2)


if __name__ == "__main__":
    run_sections(mediamill, cv, boosting, eurlex, wide, wider, threads=None)
