"""Large table, each 'epoch' is a fresh random tenth of it."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

torch.manual_seed(43)
n = 30000
x = torch.randn(n, 10)
y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + 0.2 * torch.randn(n)
full = TensorDataset(x[:28000], y[:28000])
sampler = RandomSampler(full, replacement=False, num_samples=2800)
loader = DataLoader(full, batch_size=70, sampler=sampler)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for ep in range(10):
    t = 0.0
    for a, b in loader:
        l = nn.functional.mse_loss(net(a).squeeze(1), b)
        opt.zero_grad()
        l.backward()
        opt.step()
        t += l.item() * len(b)
    with torch.no_grad():
        v = nn.functional.mse_loss(net(x[28000:]).squeeze(1), y[28000:]).item()
    print(f"sub-epoch {ep} train {t / 2800:.4f} val {v:.4f} val R2 {1 - v / y[28000:].var().item():.3f}")
