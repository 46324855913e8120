"""1-D diffusion, network predicts x0, loss weighted by the signal-to-noise ratio (truncated), summed over the batch."""
import torch
import torch.nn as nn

torch.manual_seed(0)
T = 30
s = torch.linspace(0, 1, T + 1)
abar = torch.cos((s + 0.01) / 1.01 * torch.pi / 2) ** 2
abar = (abar / abar[0])[1:].clamp(1e-3, 0.999)
snr = (abar / (1 - abar)).clamp(max=5.0)


def data(n):
    return torch.where(torch.rand(n, 1) < 0.3, -1.0, 1.0) + 0.1 * torch.randn(n, 1)


net = nn.Sequential(nn.Linear(3, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 1))
opt = torch.optim.Adam(net.parameters(), lr=4e-3, betas=(0.9, 0.99))


def predict(x, t):
    a = abar[t].unsqueeze(1)
    return net(torch.cat([x, a.sqrt(), (1 - a).sqrt()], 1))


for it in range(400):
    x0 = data(128)
    t = torch.randint(0, T, (128,))
    e = torch.randn_like(x0)
    a = abar[t].unsqueeze(1)
    loss = (snr[t].unsqueeze(1) * (predict(a.sqrt() * x0 + (1 - a).sqrt() * e, t) - x0) ** 2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 49:
        print(f"it {it + 1} weighted sum of squares {loss.item():.2f}")

with torch.no_grad():
    x = torch.randn(800, 1)
    for i in reversed(range(T)):
        t = torch.full((800,), i)
        x0 = predict(x, t)
        if i == 0:
            x = x0
            break
        eps = (x - abar[i].sqrt() * x0) / (1 - abar[i]).sqrt()
        x = abar[i - 1].sqrt() * x0 + (1 - abar[i - 1]).sqrt() * eps
    near = ((x - 1).abs() < 0.4) | ((x + 1).abs() < 0.4)
    print(f"DDIM samples near a mode {near.float().mean():.3f}, share at -1: {(x < 0).float().mean():.3f} (data 0.300)")
