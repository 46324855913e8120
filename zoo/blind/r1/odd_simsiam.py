import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(20)
proto = torch.randn(20, 24) * 1.5
y = torch.randint(0, 20, (1000,))
x = proto[y] + 0.4 * torch.randn(1000, 24)


def augment(v):
    return v * (torch.rand_like(v) > 0.15) + 0.2 * torch.randn_like(v)


f = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32))
h = nn.Sequential(nn.Linear(32, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 32))
opt = torch.optim.SGD([*f.parameters(), *h.parameters()], lr=0.05, momentum=0.9, weight_decay=1e-4)


def D(p, z):
    return -F.cosine_similarity(p, z.detach(), dim=1).mean()   # no gradient through the target branch


for it in range(250):
    b = x[torch.randint(0, 1000, (128,))]
    z1, z2 = f(augment(b)), f(augment(b))
    loss = 0.5 * D(h(z1), z2) + 0.5 * D(h(z2), z1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 0 or it == 249:
        s = F.normalize(z1, dim=1).std(0).mean().item()
        print(f"it {it} loss {loss.item():.4f} feature std {s:.3f} (1/sqrt(d) = {32 ** -0.5:.3f})")
f.eval()
with torch.no_grad():
    e = F.normalize(f(x), dim=1)
    sim = e @ e.t() - 2 * torch.eye(1000)
    print("kNN accuracy", (y[sim.argmax(1)] == y).float().mean().item())
