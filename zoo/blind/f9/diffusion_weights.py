import math

import torch
import torch.nn as nn
from sklearn.datasets import make_moons

torch.set_num_threads(1)
torch.manual_seed(2)

T = 1000


def cosine_schedule():
    t = torch.arange(T, dtype=torch.float32) / T
    return torch.cos(t * math.pi / 2) ** 2


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.time = nn.Embedding(T, 32)
        self.net = nn.Sequential(
            nn.Linear(2 + 32, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 2),
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=1))


def loss_fn(model, x0, alpha_bar):
    t = torch.randint(0, T, (len(x0),))
    a = alpha_bar[t].unsqueeze(1)
    noise = torch.randn_like(x0)
    xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    pred = model(xt, t)
    snr = alpha_bar[t] / (1 - alpha_bar[t])
    per_sample = (pred - x0).pow(2).mean(1)
    return (torch.log1p(snr) * per_sample).mean()


points = torch.tensor(make_moons(4000, noise=0.05, random_state=0)[0], dtype=torch.float32)
points = (points - points.mean(0)) / points.std(0)
alpha_bar = cosine_schedule()
model = Denoiser()
ema = [p.detach().clone() for p in model.parameters()]
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

step = 0
average = None
while step < 600:
    batch = points[torch.randint(len(points), (12,))]
    loss = loss_fn(model, batch, alpha_bar)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    with torch.no_grad():
        for e, p in zip(ema, model.parameters()):
            e.lerp_(p, 0.01)
    average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
    if step % 30 == 0:
        print(f"step {step} average loss {average:.4f}")
    step += 1
