"""LambdaRank: the gradient w.r.t. the scores is computed by hand and pushed through the scorer."""
import torch
import torch.nn as nn

torch.manual_seed(4)
N_FEAT, N_DOC = 9, 10


def queries(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, N_DOC, N_FEAT, generator=g)
    u = x[..., 0] - 0.8 * x[..., 1] + 0.7 * x[..., 2] * x[..., 3] + 0.2 * torch.randn(n, N_DOC, generator=g)
    return x, torch.bucketize(u, torch.tensor([-0.5, 0.7, 1.8])).float()


def lambdas(s, rel):
    gain = 2 ** rel - 1
    rank = s.argsort(dim=1, descending=True).argsort(dim=1).float()
    disc = 1 / torch.log2(rank + 2)
    ideal = (gain.sort(dim=1, descending=True).values / torch.log2(torch.arange(N_DOC) + 2.0)).sum(1).clamp(min=1e-3)
    delta = ((gain[:, :, None] - gain[:, None, :]) * (disc[:, :, None] - disc[:, None, :])).abs() / ideal[:, None, None]
    better = (rel[:, :, None] > rel[:, None, :]).float()
    w = better * delta * torch.sigmoid(-(s[:, :, None] - s[:, None, :]))
    return -w.sum(2) + w.sum(1)


def ndcg(s, rel, k=5):
    disc = 1 / torch.log2(torch.arange(k) + 2.0)
    gain = 2 ** rel - 1
    got = (gain.gather(1, s.topk(k, 1).indices) * disc).sum(1)
    return (got / (gain.topk(k, 1).values * disc).sum(1).clamp(min=1e-3)).mean().item()


x, rel = queries(400, 1)
xv, relv = queries(120, 2)
f = nn.Sequential(nn.Linear(N_FEAT, 40), nn.ReLU(), nn.Linear(40, 1))
opt = torch.optim.Adam(f.parameters(), lr=5e-3)
for it in range(301):
    idx = torch.randint(0, len(x), (24,))
    s = f(x[idx]).squeeze(-1)
    opt.zero_grad()
    s.backward(lambdas(s.detach(), rel[idx]) / len(idx))
    opt.step()
    if it % 50 == 0:
        with torch.no_grad():
            print("iter", it, "ndcg@5 train %.4f valid %.4f" % (ndcg(f(x).squeeze(-1), rel), ndcg(f(xv).squeeze(-1), relv)))
