"""Mixture density network for an inverse problem: several answers per input, so the mean prediction is useless."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(10)
K = 6


def arm(n):
    """Two-link arm: joint angles from the position of the hand (elbow up or down)."""
    a, b = torch.rand(n) * 4.4 - 2.2, (torch.rand(n) * 2.0 + 0.4) * torch.where(torch.rand(n) < 0.5, 1.0, -1.0)
    joints = torch.stack([a, b], 1)
    return hand(joints) + 0.01 * torch.randn(n, 2), joints


def hand(j):
    a, b = j[..., 0], j[..., 1]
    return torch.stack([a.cos() + 0.8 * (a + b).cos(), a.sin() + 0.8 * (a + b).sin()], -1)


class MDN(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, K * 5))

    def forward(self, x):
        out = self.net(x)
        logit, mu, ls = out[:, :K], out[:, K:3 * K].view(-1, K, 2), out[:, 3 * K:].view(-1, K, 2)
        return F.log_softmax(logit, 1), mu, ls.clamp(-5, 2)


def nll(p, y):
    logw, mu, ls = p
    comp = (-0.5 * ((y[:, None] - mu) / ls.exp()).pow(2) - ls - 0.5 * math.log(2 * math.pi)).sum(-1)
    return -torch.logsumexp(logw + comp, 1).mean()


def draw(p):
    logw, mu, ls = p
    k = torch.distributions.Categorical(logits=logw).sample()
    i = torch.arange(len(k))
    return mu[i, k] + ls[i, k].exp() * torch.randn(len(k), 2)


x, y = arm(8000)
xt, yt = arm(2000)
model = MDN()
plain = nn.Sequential(nn.Linear(2, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 2))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
opt_p = torch.optim.Adam(plain.parameters(), lr=3e-3)
epochs = 24
scheds = [torch.optim.lr_scheduler.CosineAnnealingLR(o, epochs) for o in (opt, opt_p)]
for e in range(1, epochs + 1):
    sums = [0.0, 0.0]
    for idx in torch.randperm(len(x)).split(100):
        for j, (o, loss) in enumerate(((opt, nll(model(x[idx]), y[idx])), (opt_p, F.mse_loss(plain(x[idx]), y[idx])))):
            o.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(o.param_groups[0]["params"], 5.0)
            o.step()
            sums[j] += loss.item() * len(idx) / len(x)
    for s in scheds:
        s.step()
    if e % 3 == 0:
        with torch.no_grad():
            print(f"epoch {e:3d}  mixture nll {sums[0]:+.3f}  test {nll(model(xt), yt).item():+.3f}  "
                  f"least squares mse {sums[1]:.3f} (variance of joints {y.var(0).mean().item():.3f})")
with torch.no_grad():
    p = model(xt)
    off = (hand(draw(p)) - xt).norm(dim=1).median().item()
    off_plain = (hand(plain(xt)) - xt).norm(dim=1).median().item()
    up = (draw(p)[:, 1] > 0).float().mean().item()
print(f"median distance of the hand: mixture samples {off:.3f}  least squares {off_plain:.3f}  elbow-up share {up:.2f}")
