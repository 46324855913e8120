"""Hypernetwork: the weights of the small sine regressor are outputs of another net, the regressor itself owns no parameters.
Goal: mean test MSE over unseen (amplitude, phase) tasks below 0.02."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(25)
SHAPES = [(1, 24), (24,), (24, 24), (24,), (24, 1), (1,)]
SIZES = [int(torch.tensor(s).prod()) for s in SHAPES]


class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, sum(SIZES))
        nn.init.normal_(self.head.weight, std=0.02)
        with torch.no_grad():
            chunks = [torch.randn(s) / (s[0] ** 0.5) if len(s) == 2 else torch.randn(s) * 0.5 for s in SHAPES]
            self.head.bias.copy_(torch.cat([c.flatten() for c in chunks]))

    def forward(self, task):
        flat = self.head(self.body(task))
        return [w.view(-1, *s) for w, s in zip(flat.split(SIZES, -1), SHAPES)]


def target_net(weights, x):
    w1, b1, w2, b2, w3, b3 = weights
    h = torch.tanh(x @ w1 + b1[:, None])
    h = torch.tanh(h @ w2 + b2[:, None])
    return h @ w3 + b3[:, None]


def tasks(n, points=20):
    amp, ph = torch.rand(n, 1) * 1.5 + 0.5, torch.rand(n, 1) * 3.14
    x = torch.rand(n, points, 1) * 4 - 2
    return torch.cat([amp, ph.sin(), ph.cos()], 1), x, amp[:, None] * torch.sin(2 * x + ph[:, None])


net = Hyper()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 1500)
tt, tx, ty = tasks(300)
for step in range(1, 1501):
    t, x, y = tasks(32)
    loss = (target_net(net(t), x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 150 == 0:
        with torch.no_grad():
            print(f"step {step} train {loss.item():.4f} unseen tasks {(target_net(net(tt), tx) - ty).pow(2).mean().item():.4f}")
