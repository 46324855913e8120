"""SimCLR like pretraining without labels: loss stays well above zero; kNN accuracy tells."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(18)
C = 8
proto = torch.randn(C, 12)
y = torch.randint(0, C, (3000,))
nuis = torch.randn(20, 40)
mixc = torch.randn(12, 40)


def view(labels, content):
    return (proto[labels] + content) @ mixc * 0.5 + 1.6 * torch.randn(len(labels), 20) @ nuis


content = 0.3 * torch.randn(3000, 12)
enc = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 32))
proj = nn.Sequential(nn.ReLU(), nn.Linear(32, 32))
opt = torch.optim.Adam([*enc.parameters(), *proj.parameters()], lr=1e-3)


@torch.no_grad()
def knn():
    z = F.normalize(enc(view(y, content)), dim=1)
    bank, q = z[:2400], z[2400:]
    nb = (q @ bank.T).topk(15, 1).indices
    return (y[:2400][nb].mode(1).values == y[2400:]).float().mean().item()


print(f"untrained knn acc {knn():.3f}")
for ep in range(20):
    tot = 0.0
    perm = torch.randperm(2400)
    for i in perm.split(160):
        a = F.normalize(proj(enc(view(y[i], content[i]))), dim=1)
        b = F.normalize(proj(enc(view(y[i], content[i]))), dim=1)
        z = torch.cat([a, b])
        sim = z @ z.T / 0.3
        sim.fill_diagonal_(-1e9)
        n = len(i)
        loss = F.cross_entropy(sim, torch.cat([torch.arange(n) + n, torch.arange(n)]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() / 15
    if ep % 2 == 1:
        print(f"epoch {ep} nt-xent {tot:.3f} (uniform 5.765) knn acc {knn():.3f}")
