"""
Train a network to rank labels
==============================

The paper's answer is a loss, and a network can be trained by it: ``deltarank.torch`` has it as a
module. Labels here depend on angle and distance, which no linear score can tell. Needs PyTorch.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from deltarank import LogisticRanker, rank_loss
from deltarank.torch import UnivariateRankingLoss

torch.set_num_threads(1)  # products this small lose by sharing
torch.manual_seed(0)


def rings(n, random_state):
    """Return points in the plane and label sets that depend on angle and distance."""
    generator = np.random.default_rng(random_state)
    X = generator.normal(size=(n, 2)).astype(np.float32)
    distance, angle = np.hypot(*X.T), np.arctan2(*X.T)
    chances = [np.exp(-4 * (distance - near) ** 2) for near in (0.3, 1.0, 1.8)]
    chances += [(1 + np.cos(3 * angle + turn)) / 2 for turn in (0, 2, 4)]
    Y = generator.random((n, 6)) < 0.1 + 0.8 * np.stack(chances, axis=1)
    return X, Y.astype(np.float32)


X, Y = rings(4000, random_state=0)
X_new, Y_new = rings(4000, random_state=1)
linear = rank_loss(Y_new, LogisticRanker().fit(X, Y).decision_function(X_new))

# %%
# Two hidden layers, and the loss of the paper: each row weighs 1/(s(m-s)), each label has a
# logistic loss of its own.

layers = [nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 6)]
network = nn.Sequential(*layers)
loss = UnivariateRankingLoss(weight="rank", surrogate="logistic")
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
rows = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
losses = []
for _ in range(12):
    for x, y in torch.utils.data.DataLoader(rows, batch_size=128, shuffle=True):
        optimizer.zero_grad()
        loss(network(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        losses.append(rank_loss(Y_new, network(torch.from_numpy(X_new)).numpy()))
print(f"rank loss of the linear ranker {linear:.3f}, of the network {losses[-1]:.3f}")

# %%

figure, panel = plt.subplots(figsize=(6.5, 3.4))
panel.plot(range(1, len(losses) + 1), losses, "o-", label="network")
panel.axhline(linear, color="C1", linestyle="--", label="LogisticRanker")
panel.set(xlabel="epoch", ylabel="rank loss on new points", ylim=(0, None))
panel.legend()
plt.show()

# %%
# A few epochs are enough to leave the linear ranker behind.
