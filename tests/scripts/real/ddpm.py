"""A small diffusion model: noise is added and predicted, with an EMA of the weights."""

import copy
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULT = os.environ.get("FAULT", "")
torch.manual_seed(0)
STEPS = 50
betas = torch.linspace(1e-4, 0.1, STEPS)
alpha_bar = torch.cumprod(1 - betas, 0)


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Embedding(STEPS, 16)
        self.net = nn.Sequential(
            nn.Linear(18, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=1))


angle = torch.rand(2560) * 6.283
data = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(2560, 2)
loader = DataLoader(TensorDataset(data), batch_size=64, shuffle=True, drop_last=True)
model = Denoiser()
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
loss_fn = nn.MSELoss()

for epoch in range(8):
    for i, (x0,) in enumerate(loader):
        t = torch.randint(0, STEPS, (len(x0),))
        noise = torch.randn_like(x0)
        a = alpha_bar[t][:, None]
        xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
        pred = model(xt, t)
        if FAULT == "detached-output":
            pred = pred.detach().requires_grad_()
        loss = loss_fn(pred, noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for e, p in zip(ema.parameters(), model.parameters(), strict=True):
                e.lerp_(p, 0.01)
        if i % 5 == 0:
            print(f"epoch {epoch} it {i} loss {loss.item()}")
