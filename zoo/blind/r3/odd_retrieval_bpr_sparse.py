import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

# BPR matrix factorisation, sparse gradients, sampled negatives, no dense optimizer at all
torch.manual_seed(1)
rng = np.random.default_rng(1)
U, I, K = 400, 250, 10
taste = rng.normal(size=(U, 4)) @ rng.normal(size=(4, I)) + 1.0 * rng.gumbel(size=(U, I))
pos = torch.tensor(np.argsort(-taste, 1)[:, :K + 1].copy())
order = torch.argsort(torch.rand(U, K + 1), 1)
pos = pos.gather(1, order)
train, test = pos[:, :K], pos[:, K]
u_emb = nn.Embedding(U, 16, sparse=True)
i_emb = nn.Embedding(I, 16, sparse=True)
for e in (u_emb, i_emb):
    nn.init.normal_(e.weight, std=0.1)
opt = torch.optim.SparseAdam([*u_emb.parameters(), *i_emb.parameters()], lr=0.02)
seen = torch.zeros(U, I, dtype=torch.bool).scatter_(1, train, True)

for step in range(601):
    u = torch.randint(0, U, (256,))
    p = train[u, torch.randint(0, K, (256,))]
    n = torch.randint(0, I, (256,))
    hit = seen[u, n]
    while hit.any():
        n[hit] = torch.randint(0, I, (int(hit.sum()),))
        hit = seen[u, n]
    diff = (u_emb(u) * (i_emb(p) - i_emb(n))).sum(1)
    loss = -F.logsigmoid(diff).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        with torch.no_grad():
            s = (u_emb.weight @ i_emb.weight.T).masked_fill(seen, -1e9)
            rec = (s.topk(20, 1).indices == test[:, None]).any(1).float().mean()
        print(f"step {step} bpr {loss.item():.4f} recall@20 {rec:.3f}")
