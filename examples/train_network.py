"""Train a small network to rank labels, and see it beat the linear ranker where labels bend.

Six labels depend on the angle of a point and on its distance from the origin, which no linear score
can tell. Needs PyTorch; takes some seconds: ``python examples/train_network.py``.
"""

import numpy as np
import torch
from torch import nn

from deltarank import LogisticRanker, rank_loss
from deltarank.torch import UnivariateRankingLoss


def rings(n, random_state):
    """Return points in the plane and label sets that depend on angle and distance."""
    generator = np.random.default_rng(random_state)
    X = generator.normal(size=(n, 2)).astype(np.float32)
    distance, angle = np.hypot(*X.T), np.arctan2(*X.T)
    chances = [np.exp(-4 * (distance - near) ** 2) for near in (0.3, 1.0, 1.8)]
    chances += [(1 + np.cos(3 * angle + turn)) / 2 for turn in (0, 2, 4)]
    Y = generator.random((n, 6)) < 0.1 + 0.8 * np.stack(chances, axis=1)
    return X, Y.astype(np.float32)


def train(X, Y, n_epochs):
    """Fit a network of two hidden layers by the paper's loss."""
    torch.manual_seed(0)
    layers = [nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 6)]
    network = nn.Sequential(*layers)
    loss = UnivariateRankingLoss(weight="rank", surrogate="logistic")
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    rows = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    for _ in range(n_epochs):
        for x, y in torch.utils.data.DataLoader(rows, batch_size=128, shuffle=True):
            optimizer.zero_grad()
            loss(network(x), y).backward()
            optimizer.step()
    return network


def main(n_epochs=30):
    """Return the rank losses of the linear ranker and of the network on new points."""
    torch.set_num_threads(1)  # products this small lose by sharing
    X, Y = rings(4000, random_state=0)
    X_new, Y_new = rings(4000, random_state=1)
    linear = rank_loss(Y_new, LogisticRanker().fit(X, Y).decision_function(X_new))
    network = train(X, Y, n_epochs)
    with torch.no_grad():
        scores = network(torch.from_numpy(X_new)).numpy()
    return linear, rank_loss(Y_new, scores)


if __name__ == "__main__":
    linear, network = main()
    print(f"rank loss of the linear ranker {linear:.3f}, of the network {network:.3f}")
