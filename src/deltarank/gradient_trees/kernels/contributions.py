"""Shapley values of a row's features in trees, leaf by leaf (Lundberg, Erion and Lee 2018)."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.gradient_trees.kernels.routes import goes_left

NO_PARENT = np.iinfo(np.int64).max


@njit(nogil=True, cache=True)
def add_contributions(
    row, parents, leaf_parents, features, routes, covers, leaf_covers, values, total
):
    """Add to ``total`` (d) what each feature adds to the sum of the values of the row's leaves.

    A game is played for every leaf: a player is a feature asked for on the way to it. A feature
    that is known lets the row through if it goes that way; one that is not lets through the share
    of training rows that went that way. The leaf pays its value times what comes through.

    Parameters
    ----------
    parents, leaf_parents : arrays of int
        Of each inner node and leaf: the node above, ``~node`` for its right child, `NO_PARENT`
        for a root.
    routes : tuple
        What `goes_left` takes beside a value and a node.
    covers, leaf_covers : arrays of float
        Weight of training rows in each.
    """
    path = np.empty(features.shape[0] + 1, np.int64)
    follows, shares = np.empty(path.shape[0]), np.empty(path.shape[0])
    ways = np.empty(path.shape[0] + 1)
    for leaf in range(leaf_parents.shape[0]):
        n_players = 0
        above, cover = leaf_parents[leaf], leaf_covers[leaf]
        while above != NO_PARENT:
            is_right = above < 0
            node = ~above if is_right else above
            feature = features[node]
            player = 0
            while player < n_players and path[player] != feature:
                player += 1
            if player == n_players:
                path[player], follows[player], shares[player] = feature, 1.0, 1.0
                n_players += 1
            if goes_left(row[feature], node, *routes) == is_right:
                follows[player] = 0.0
            shares[player] *= cover / covers[node]
            above, cover = parents[node], covers[node]
        for player in range(n_players):
            change = follows[player] - shares[player]
            chance = _mean_of_others(player, n_players, follows, shares, ways)
            total[path[player]] += values[leaf] * change * chance


@njit(nogil=True)
def _mean_of_others(player, n_players, follows, shares, ways):
    """Return the mean, over orders of the players, of what the others before and after let through.

    ``ways[s]`` sums, over sets of s others that come before the player, the product of what those
    let through who are known and those who are not.
    """
    ways[0] = 1.0
    n_others = 0
    for other in range(n_players):
        if other != player:
            ways[n_others + 1] = 0.0
            for s in range(n_others + 1, 0, -1):
                ways[s] = ways[s] * shares[other] + ways[s - 1] * follows[other]
            ways[0] *= shares[other]
            n_others += 1
    mean, n_sets = 0.0, 1.0
    for s in range(n_players):
        mean += ways[s] / n_sets
        n_sets *= (n_others - s) / (s + 1)
    return mean / n_players
