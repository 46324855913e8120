# OpenAI-style evolution strategy: antithetic noise, rank shaping, no backward at all, tiny validation set of 12 points
import torch, torch.nn as nn
from torch.nn.utils import parameters_to_vector as p2v, vector_to_parameters as v2p
torch.manual_seed(0); torch.set_grad_enabled(False)
net = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 1))
X = torch.rand(200, 2) * 4 - 2; Y = (X[:, :1] * X[:, 1:] > 0).float() * 2 - 1
Xv = torch.tensor([[a, b] for a in (-1.5, -.6, .6, 1.5) for b in (-1., .5, 1.2)]); Yv = (Xv[:, :1] * Xv[:, 1:] > 0).float() * 2 - 1
theta = p2v(net.parameters()); opt = torch.optim.Adam([theta], lr=0.05); sigma, P = 0.15, 24
def score(v): v2p(v, net.parameters()); return -(torch.tanh(net(X)) - Y).pow(2).mean().item()
for g in range(1, 501):
    eps = torch.randn(P, len(theta)); eps = torch.cat([eps, -eps])
    f = torch.tensor([score(theta + sigma * e) for e in eps])
    rank = f.argsort().argsort().float() / (2 * P - 1) - 0.5
    theta.grad = -(rank[:, None] * eps).mean(0) / sigma
    opt.step()
    if g % 50 == 0:
        s = score(theta); print(f"generation {g} fitness {s:.4f} train acc {((net(X) > 0).float()*2-1 == Y).float().mean():.3f} val acc {((net(Xv) > 0).float()*2-1 == Yv).float().mean():.3f}")
