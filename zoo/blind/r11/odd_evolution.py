# Evolution strategy with antithetic sampling, followed by a few gradient steps.
# In the first phase no .backward() is called at all; p.grad is filled by hand.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.set_num_threads(1)
torch.manual_seed(0)
n = 600
t = torch.rand(n) * 3.0
lab = torch.randint(0, 2, (n,))
r = 0.4 + t / 3
ang = 2.2 * t + lab * 3.1416
X = torch.stack([r * ang.cos(), r * ang.sin()], 1) + 0.04 * torch.randn(n, 2)
xtr, ytr, xte, yte = X[:400], lab[:400], X[400:], lab[400:]

net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 2))


@torch.no_grad()
def score(vec):
    vector_to_parameters(vec, net.parameters())
    return F.cross_entropy(net(xtr), ytr)


def accuracy():
    with torch.no_grad():
        return (net(xte).argmax(1) == yte).float().mean().item()


theta = parameters_to_vector(net.parameters()).detach().clone()
adam = torch.optim.Adam([theta], lr=0.03)
SIGMA, POP = 0.05, 40
for gen in range(200):
    eps = torch.randn(POP, theta.numel())
    gain = torch.stack([score(theta + SIGMA * e) - score(theta - SIGMA * e) for e in eps])
    theta.grad = (gain[:, None] * eps).mean(0) / (2 * SIGMA)
    adam.step()
    if gen % 40 == 0:
        print(f"generation {gen}: loss {score(theta).item():.3f} test acc {accuracy():.3f}")
vector_to_parameters(theta, net.parameters())
print(f"after evolution: test acc {accuracy():.3f}")

opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(600):
    loss = F.cross_entropy(net(xtr), ytr)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"after gradient polish: loss {loss.item():.4f} test acc {accuracy():.3f}")
