import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(14)
torch.manual_seed(14)

QUERIES, DOCS, FEAT = 300, 10, 16
w_true = rng.standard_normal(FEAT)
feats = rng.standard_normal((QUERIES, DOCS, FEAT)).astype(np.float32)
rel = np.digitize(feats @ w_true / 4 + 0.3 * np.tanh(feats[..., 0] * feats[..., 1]), [-1, -0.3, 0.3, 1]).astype(np.float32)

scorer = nn.Sequential(nn.Linear(FEAT, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.SGD(scorer.parameters(), lr=0.05, momentum=0.9)

# grow the effective batch as training settles: epoch -> micro batches per update
ACCUM = {0: 1, 3: 15}


def pairwise_loss(s, r):
    ds = s[:, :, None] - s[:, None, :]
    dr = r[:, :, None] - r[:, None, :]
    better = (dr > 0).float()
    return (better * (dr - ds) ** 2).sum() / better.sum()


accum, count, log = 1, 0, []
for epoch in range(8):
    accum = ACCUM.get(epoch, accum)
    order = rng.permutation(QUERIES)
    optimizer.zero_grad()
    for k in range(0, QUERIES, 10):
        q = order[k:k + 10]
        s = scorer(torch.from_numpy(feats[q])).squeeze(-1)
        loss = pairwise_loss(s, torch.from_numpy(rel[q]))
        loss.backward()
        log.append(loss.item())
        count += 1
        if count % accum == 0:
            optimizer.step()
            optimizer.zero_grad()
        if k % 50 == 0:
            print(f"epoch {epoch} query {k:3d} pairwise {np.mean(log[-5:]):.4f}")
