import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

p = argparse.ArgumentParser()
p.add_argument("--inv", type=float, default=25.0)
p.add_argument("--var", type=float, default=25.0)
p.add_argument("--cov", type=float, default=1.0)
p.add_argument("--epochs", type=int, default=10)
a = p.parse_args()
torch.manual_seed(2)
K, DIM, NUIS = 7, 28, 8
means = torch.randn(K, DIM)
basis = torch.linalg.qr(torch.randn(DIM, NUIS))[0]


def draw(n):
    y = torch.randint(0, K, (n,))
    return means[y] + 0.5 * torch.randn(n, DIM) + 4.0 * torch.randn(n, NUIS) @ basis.T, y


def view(x):
    """New nuisance part and small noise, as a camera would change light and background."""
    return x + 4.0 * torch.randn(len(x), NUIS) @ basis.T + 0.2 * torch.randn_like(x)


body = nn.Sequential(nn.Linear(DIM, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 24))
expand = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 48))
opt = torch.optim.AdamW([*body.parameters(), *expand.parameters()], lr=3e-3)
x, _ = draw(2000)
xp, yp = draw(300)
xq, yq = draw(600)


def knn():
    body.eval()
    with torch.no_grad():
        near = torch.cdist(body(xq), body(xp)).topk(9, dim=1, largest=False).indices
    body.train()
    return (F.one_hot(yp[near], K).sum(1).argmax(1) == yq).float().mean().item()


def off_diagonal(z):
    z = z - z.mean(0)
    c = z.T @ z / (len(z) - 1)
    return (c.pow(2).sum() - c.diagonal().pow(2).sum()) / z.shape[1]


print(f"random body: knn {knn():.3f}")
for ep in range(a.epochs):
    for b in torch.randperm(len(x)).split(100):
        z1, z2 = expand(body(view(x[b]))), expand(body(view(x[b])))
        inv = F.mse_loss(z1, z2)
        var = F.relu(1 - (z1.var(0) + 1e-4).sqrt()).mean() + F.relu(1 - (z2.var(0) + 1e-4).sqrt()).mean()
        cov = off_diagonal(z1) + off_diagonal(z2)
        loss = a.inv * inv + a.var * var + a.cov * cov
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {ep} total {loss.item():.2f} inv {inv.item():.3f} var {var.item():.3f} cov {cov.item():.3f} knn {knn():.3f}")
