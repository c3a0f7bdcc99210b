"""Label trees rank rightly: products of node chances, and the regret bound, by enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from deltarank.core.losses import LOSSES
from deltarank.core.weights import WEIGHTS
from deltarank.theory import regret_bound, tree_regret_bound
from oracles import distributions


def by_first_label(Y):
    """Weigh by more than the size of a set; sets without a pair count nothing."""
    Y = np.asarray(Y)
    sizes = Y.sum(axis=1)
    return np.where((sizes > 0) & (sizes < Y.shape[1]), 1.0 + 3.0 * Y[:, 0], 0.0)


KINDS = [*WEIGHTS, ("ndcg", 2), by_first_label]


def random_tree(labels, rng):
    """Return nested lists of labels; no list has one entry alone."""
    if len(labels) < 3 or rng.random() < 0.2:
        return np.asarray(labels).tolist()
    labels = rng.permutation(labels).tolist()
    cuts = np.sort(rng.choice(np.arange(1, len(labels)), rng.integers(1, len(labels) - 1), False))
    parts = np.split(np.array(labels), cuts)
    return [random_tree(part.tolist(), rng) if len(part) > 1 else int(part[0]) for part in parts]


def labels_below(node):
    if isinstance(node, int):
        return [node]
    return [label for child in node for label in labels_below(child)]


def walk(distribution, weight, tree, estimate):
    """Return the products of estimated chances, and the regrets of all nodes added up.

    ``estimate(chance)`` is what a node says when its true chance, given its parent, is that.
    Everything is a sum over all label sets.
    """
    mass = distribution.weights(weight) * distribution.probabilities
    products, regret = np.zeros(distribution.n_labels), 0.0

    def holds(node):
        return distribution.labelings[:, labels_below(node)].any(axis=1)

    def descend(node, parent, product):
        nonlocal regret
        total = mass[parent].sum()
        chance = mass[holds(node)].sum() / total if total > 0 else 0.5
        said, node_regret = estimate(min(chance, 1.0))
        regret += total * node_regret
        if isinstance(node, int):
            products[node] = product * said
            return
        for child in node:
            descend(child, holds(node), product * said)

    for child in tree:
        descend(child, holds(tree), 1.0)
    return products, regret


@pytest.mark.parametrize(
    "weight", KINDS, ids=lambda weight: getattr(weight, "__name__", str(weight))
)
@given(distribution=distributions(), seed=st.integers(0, 2**32 - 1))
def test_products_of_exact_node_chances_are_what_the_best_ranking_sorts_by(
    weight, distribution, seed
):
    mean = distribution.mean_weight(weight)
    if mean < 1e-9:
        return
    tree = random_tree(np.arange(distribution.n_labels), np.random.default_rng(seed))
    products, _ = walk(distribution, weight, tree, lambda chance: (chance, 0.0))
    assert_allclose(products, distribution.marginal_weights(weight) / mean, atol=1e-9)
    assert distribution.regret(products, weight) <= 1e-9


def wrong(loss, rng):
    """Return a node that errs at random, and its regret for the loss."""
    phi = LOSSES[loss]

    def estimate(chance):
        said = float(np.clip(chance + rng.normal() * 10.0 ** rng.uniform(-3, 0), 0.01, 0.99))
        score = phi.link(said)
        risk = chance * phi.value(score) + (1 - chance) * phi.value(-score)
        return said, max(float(risk - phi.bayes_risk(chance)), 0.0)

    return estimate


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared"])
@given(
    distribution=distributions(),
    weight=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_tree_has_more_regret_than_the_bound(loss, distribution, weight, seed):
    mean, rng = distribution.mean_weight(weight), np.random.default_rng(seed)
    if mean < 1e-9:
        return
    tree = random_tree(np.arange(distribution.n_labels), rng)
    products, surrogate = walk(distribution, weight, tree, wrong(loss, rng))
    bound = tree_regret_bound(surrogate, tree, mean, loss)
    assert distribution.regret(products, weight) <= bound + 1e-9


def test_the_stretch_of_even_groups_is_the_root_of_one_more_than_their_size():
    for k in (2, 3, 7):
        groups = [list(range(k * g, k * g + k)) for g in range(4)]
        flat = regret_bound(0.3, 4 * k, 0.1)
        assert_allclose(tree_regret_bound(0.3, groups, 0.1), np.sqrt(1 + k) * flat)
        rooted = tree_regret_bound(0.3, groups, 0.1, certain_root=False)
        assert_allclose(rooted, np.sqrt(1 + k + 4 * k) * flat)


def test_a_label_given_twice_is_refused():
    with pytest.raises(ValueError, match="tree must hold each label once"):
        tree_regret_bound(0.1, [[0, 1], [1, 2]], 1.0)
