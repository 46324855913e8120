import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(208)


def joints(n=2500):
    angle = torch.rand(n, 3) * 2 - 1
    tip = torch.stack([torch.sin(angle[:, 0]) + angle[:, 1], torch.cos(angle[:, 2])], dim=1)
    return angle, 0.01 * tip + 2e-4 * torch.randn(n, 2)


class GaussHead(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.mean = nn.Linear(hidden, 2)
        self.spread = nn.Linear(hidden, 2)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.spread(h).clamp(-9.0, 3.0)


def nll(mean, log_std, y):
    z = (y - mean) * torch.exp(-log_std)
    return (0.5 * z.pow(2) + log_std + 0.5 * math.log(2 * math.pi)).sum(1).mean()


x, y = joints()
model = GaussHead()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
step = 0
for epoch in range(16):
    for idx in torch.randperm(len(x)).split(50):
        mean, log_std = model(x[idx])
        loss = nll(mean, log_std, y[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        opt.step()
        if step % 50 == 0:
            print(f"step {step} nll {loss.item():.4f}")
        step += 1
