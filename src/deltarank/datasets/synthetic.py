"""The paper's synthetic data (section 5.1), with its Bayes ranker and Bayes risk."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from deltarank.core.threads import row_blocks, run
from deltarank.core.weights import Weight, weight_of_size
from deltarank.datasets.kernels.sign_patterns import expected_weights, independent_weights

Floats = NDArray[np.float64]
ROWS_PER_TASK = 64
# Nodes of the half disk: radii and angles. The coarse grid is right to a few times 1e-6.
COARSE, FINE = (8, 180), (16, 720)
# Rankings differ near the lines where two labels tie, which takes more nodes than a risk.
REGRET_GRID = (12, 240)
# Independently scrambled Sobol sequences, whose spread tells the error.
N_SCRAMBLES = 8


class BayesRisk(NamedTuple):
    """The least expected rank loss of a model, and how far off the value may be.

    Examples
    --------
    >>> model = SyntheticModel([[1.0, 0.0], [-1.0, 0.0]])
    >>> risk = model.bayes_risk()
    >>> risk.error < 1e-5 < risk.value < 0.5
    True
    """

    value: float
    error: float


class Expectation(NamedTuple):
    """E[w(Y) Y_l | x] of each label, and E[w(Y) S (m - S) | x], at each x."""

    marginal: Floats
    pair_mass: Floats


class SyntheticModel:
    """Labels of a noisy, mixed linear model of points in the unit disk, Eq. (38).

    A point x is uniform in the unit disk, f = A x + noise, and label l is relevant when
    (M f)_l > 0. With M = I the labels are independent given x; otherwise they are not.

    Parameters
    ----------
    directions : array of shape (m, 2)
        A, one row per label.
    mixing : array of shape (m, m), optional
        M; the identity when left out.
    noise : float
        Standard deviation of the noise.

    Examples
    --------
    >>> model = SyntheticModel.random(n_labels=5, dependent=True, random_state=0)
    >>> X, Y = model.sample(1000, random_state=1)
    >>> X.shape, Y.shape
    ((1000, 2), (1000, 5))
    >>> from deltarank import rank_loss
    >>> risk = model.bayes_risk()
    >>> abs(rank_loss(Y, model.bayes_scores(X)) - risk.value) < 0.05
    True
    """

    def __init__(self, directions: Any, mixing: Any = None, noise: float = 0.5) -> None:
        self.directions = np.asarray(directions, dtype=float)
        if self.directions.ndim != 2 or self.directions.shape[1] != 2 or len(self.directions) < 2:
            raise ValueError(
                "directions must have shape (m, 2) with m of at least 2 (one label has no pair); "
                f"got shape {self.directions.shape}"
            )
        m = len(self.directions)
        self.mixing = np.eye(m) if mixing is None else np.asarray(mixing, dtype=float)
        if self.mixing.shape != (m, m):
            raise ValueError(
                f"mixing must have shape ({m}, {m}), one row per label; "
                f"got shape {self.mixing.shape}"
            )
        if not (np.isfinite(self.directions).all() and np.isfinite(self.mixing).all()):
            raise ValueError("directions and mixing must be finite")
        if not (np.isfinite(noise) and noise > 0):
            raise ValueError(f"noise must be finite and positive; got {noise!r}")
        self.noise = float(noise)

    @classmethod
    def random(
        cls,
        n_labels: int = 10,
        dependent: bool = False,
        noise: float = 0.5,
        random_state: Any = None,
    ) -> "SyntheticModel":
        """Draw a model: directions uniform on the circle, mixing entries uniform in [-1, 1].

        The same random state gives the same directions whether labels are dependent or not, so
        that the two cases of a model differ in the mixing alone, as in the paper.
        """
        if not isinstance(n_labels, int | np.integer) or n_labels < 2:
            raise ValueError(f"n_labels must be an integer of at least 2; got {n_labels!r}")
        generator = np.random.default_rng(random_state)
        angles = generator.uniform(0, 2 * np.pi, n_labels)
        mixing = generator.uniform(-1, 1, (n_labels, n_labels)) if dependent else None
        return cls(np.column_stack([np.cos(angles), np.sin(angles)]), mixing, noise)

    @property
    def n_labels(self) -> int:
        """Number of labels m.

        Examples
        --------
        >>> SyntheticModel.random(n_labels=4, random_state=0).n_labels
        4
        """
        return len(self.directions)

    @property
    def independent(self) -> bool:
        """Whether the labels are independent given x: each mixes its own noise alone.

        Examples
        --------
        >>> SyntheticModel.random(4, random_state=0).independent
        True
        >>> SyntheticModel.random(4, dependent=True, random_state=0).independent
        False
        """
        off_diagonal = self.mixing[~np.eye(self.n_labels, dtype=bool)]
        return not off_diagonal.any() and bool(np.diag(self.mixing).all())

    def sample(self, n: int, random_state: Any = None) -> tuple[Floats, NDArray[np.int8]]:
        """Draw n points and their labels."""
        if not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a positive integer; got {n!r}")
        generator = np.random.default_rng(random_state)
        radius = np.sqrt(generator.random(n))
        angle = generator.uniform(0, 2 * np.pi, n)
        X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        latent = X @ self.directions.T + self.noise * generator.standard_normal((n, self.n_labels))
        return X, (latent @ self.mixing.T > 0).astype(np.int8)

    def bayes_scores(self, X: Any, weight: Weight = "rank", n_draws: int = 4096) -> Floats:
        """Return scores in the best order at each x: eta_l(x) times W(x), Eq. (23).

        Exact for independent labels; otherwise a quasi-Monte Carlo mean over `n_draws` noise
        vectors, the same for all x. Its error is about 0.7 % of a score at 4,096 draws and 0.3 % at
        16,384.
        """
        return self.expectation(_check_points(X), weight, n_draws).marginal

    def bayes_risk(self, weight: Weight = "rank", n_draws: int = 32768) -> BayesRisk:
        """Return the expected rank loss of the Bayes ranker, and its error, Eq. (27).

        The disk is integrated by Gauss-Legendre nodes in the radius and equal angles. For
        independent labels nothing else is approximate, and the error is the difference to a coarser
        grid. Otherwise labels are averaged over `n_draws` noise vectors from eight independently
        scrambled Sobol sequences: ranking by their mean and scoring with the same draws comes out
        too low, ranking by all sequences but one and scoring with that one too high. The value is
        the middle; the error is half the gap plus two standard errors.
        """
        if self.independent:
            coarse, value = (self._exact_risk(weight, grid) for grid in (COARSE, FINE))
            return BayesRisk(value, max(abs(value - coarse), 1e-6))
        points, masses = _half_disk(*COARSE)
        each = [
            self.expectation(points, weight, n_draws // N_SCRAMBLES, seed)
            for seed in range(N_SCRAMBLES)
        ]
        marginal = np.mean([e.marginal for e in each], axis=0)
        low = masses @ least_risk(
            Expectation(marginal, np.mean([e.pair_mass for e in each], axis=0))
        )
        others = [(N_SCRAMBLES * marginal - e.marginal) / (N_SCRAMBLES - 1) for e in each]
        highs = [masses @ risk_of(e, rest) for e, rest in zip(each, others, strict=True)]
        spread = np.std(highs, ddof=1) / np.sqrt(N_SCRAMBLES)
        return BayesRisk(
            float(low + np.mean(highs)) / 2, float(abs(np.mean(highs) - low) / 2 + 2 * spread)
        )

    def regret(self, score: Any, weight: Weight = "rank", n_draws: int = 65536) -> float:
        """Return what a ranking loses to the best one, in expectation over the disk.

        Parameters
        ----------
        score : callable
            ``score(X)`` gives scores of shape (n, m), as a ranker's `decision_function` does.
        weight : str or ("ndcg", k)
        n_draws : int
            As in `bayes_scores`; the regret of the ranker that this many draws give is what a
            result may be off by, about 1e-7 at the default.

        Examples
        --------
        >>> model = SyntheticModel([[1.0, 0.0], [-1.0, 0.0]])
        >>> model.regret(lambda X: X @ model.directions.T)
        0.0
        >>> model.regret(lambda X: -X @ model.directions.T) > 0.1
        True
        """
        half, masses = _half_disk(*REGRET_GRID)
        # Scores need not be odd in x, so that both halves count.
        points, masses = np.concatenate([half, -half]), np.tile(masses / 2, 2)
        expected = self.expectation(points, weight, n_draws)
        lost = risk_of(expected, np.asarray(score(points))) - least_risk(expected)
        return float(masses @ lost)

    def _exact_risk(self, weight: Weight, grid: tuple[int, int]) -> float:
        points, masses = _half_disk(*grid)
        return float(masses @ least_risk(self.expectation(points, weight)))

    def expectation(
        self, X: Floats, weight: Weight = "rank", n_draws: int = 4096, seed: int = 0
    ) -> Expectation:
        """Return the expected weights at each x, the input of Eq. (27).

        Examples
        --------
        >>> model = SyntheticModel([[1.0, 0.0], [-1.0, 0.0]])
        >>> expected = model.expectation(np.zeros((1, 2)))  # all four sets are equally likely
        >>> expected.marginal.round(6).tolist(), expected.pair_mass.round(6).tolist()
        ([[0.25, 0.25]], [0.5])
        """
        by_size = _weight_table(weight, self.n_labels)
        result = Expectation(np.empty((len(X), self.n_labels)), np.empty(len(X)))
        centres = X @ self.directions.T
        if self.independent:
            chances = ndtr(centres * np.sign(np.diag(self.mixing)) / self.noise)
            evaluate = partial(_independent_block, chances, by_size, result)
        else:
            shifts = (centres @ self.mixing.T).astype(np.float32)
            noise = self.noise * self.mixing @ _normal_draws(self.n_labels, n_draws, seed).T
            noise = np.ascontiguousarray(noise, dtype=np.float32)
            evaluate = partial(_mixed_block, shifts, noise, by_size, result)
        run([partial(evaluate, rows) for rows in row_blocks(len(X), ROWS_PER_TASK)])
        return result


def _independent_block(chances: Floats, by_size: Floats, result: Expectation, rows: slice) -> None:
    independent_weights(chances[rows], by_size, result.marginal[rows], result.pair_mass[rows])


def _mixed_block(
    shifts: NDArray[Any], noise: NDArray[Any], by_size: Floats, result: Expectation, rows: slice
) -> None:
    expected_weights(shifts[rows], noise, by_size, result.marginal[rows], result.pair_mass[rows])


def risk_of(expected: Expectation, scores: Floats) -> Floats:
    """Return the expected rank loss of scores at each x, from the marginal weights, Eq. (27)."""
    m = scores.shape[1]
    gained = np.zeros(len(scores))
    for i in range(m):
        for j in range(i):
            order = np.sign(scores[:, i] - scores[:, j])
            gained += order * (expected.marginal[:, i] - expected.marginal[:, j])
    return (expected.pair_mass - gained) / 2


def least_risk(expected: Expectation) -> Floats:
    """Return the least expected rank loss at each x, Eq. (27)."""
    return risk_of(expected, expected.marginal)


def _weight_table(weight: Weight, m: int) -> Floats:
    if callable(weight):
        raise ValueError("weight must be a named one here: it has to depend on y through s alone")
    table = np.zeros(m + 1)
    table[1:m] = weight_of_size(weight)(np.arange(1, m), m)
    return table


def _normal_draws(dimension: int, n_draws: int, seed: int) -> Floats:
    if n_draws < 2 or n_draws & (n_draws - 1):
        raise ValueError(f"n_draws must be a power of two, as Sobol sequences need; got {n_draws}")
    sobol = qmc.Sobol(dimension, scramble=True, rng=seed).random(n_draws)
    # A scrambled point may lie on the border of the cube, where the quantile is infinite.
    return np.asarray(ndtri(np.clip(sobol, 1e-12, 1 - 1e-12)))


def _half_disk(n_radii: int, n_angles: int) -> tuple[Floats, Floats]:
    """Return nodes and probabilities for the mean over the unit disk of an even function.

    Half the circle suffices: x -> -x turns each label set into its complement, which changes
    neither weights nor risk.
    """
    nodes, node_weights = np.polynomial.legendre.leggauss(n_radii)
    radii = (nodes + 1) / 2
    masses = node_weights * radii  # density 2 r, times 1/2 for the length of [-1, 1]
    angles = np.pi * (np.arange(n_angles) + 0.5) / n_angles
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    points = (radii[:, None, None] * circle).reshape(-1, 2)
    return points, np.repeat(masses / n_angles, n_angles)


def _check_points(X: Any) -> Floats:
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have shape (n, 2), points of the plane; got shape {X.shape}")
    if not np.isfinite(X).all():
        raise ValueError("X must be finite; got NaN or infinity")
    return X
