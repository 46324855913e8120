import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
STEPS, BATCH, DIM, CLASSES = 400, 48, 20, 8
centers = torch.randn(CLASSES, DIM) * 1.2


def draw():
    y = torch.randint(0, CLASSES, (BATCH,))
    clean = centers[y]
    views = [clean + 0.9 * torch.randn(BATCH, DIM) for _ in range(2)]
    return torch.cat(views), y.repeat(2)


def temperature(step):
    return 0.003 + 0.5 * (0.5 - 0.003) * (1 + math.cos(math.pi * step / STEPS))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.project = nn.Linear(64, 16)

    def forward(self, x):
        return F.normalize(self.project(self.body(x)), dim=1)


def supervised_contrast(z, y, temp):
    n = len(z)
    sim = z @ z.t()
    other = 1 - torch.eye(n)
    same = (y[:, None] == y[None, :]).float() * other
    weight = torch.exp(sim / temp) * other
    log_prob = sim / temp - torch.log(weight.sum(1, keepdim=True))
    per_row = (same * log_prob).sum(1) / same.sum(1)
    return -per_row.mean()


model = Encoder()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
for step in range(STEPS):
    x, y = draw()
    temp = temperature(step)
    loss = supervised_contrast(model(x), y, temp)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step} temp {temp:.4f} loss {loss.item():.4f}")
print("final", losses[-1])
