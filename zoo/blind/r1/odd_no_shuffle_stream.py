"""Time series in chronological order on purpose (walk-forward): train on a day, test on the next, never shuffle."""
import torch
import torch.nn as nn

torch.manual_seed(28)
T = 2600
t = torch.arange(T, dtype=torch.float64)
drift = torch.cumsum(0.02 * torch.randn(T, dtype=torch.float64), 0)
s = torch.sin(t / 9) + 0.4 * torch.sin(t / 3.7 + drift) + 0.1 * torch.randn(T, dtype=torch.float64)
net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)).double()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
w = s.unfold(0, 17, 1)
errs = []
for day in range(len(w) // 24 - 1):
    nxt = w[(day + 1) * 24:(day + 2) * 24]
    cur = w[day * 24:(day + 1) * 24]
    for _ in range(3):
        loss = (net(cur[:, :16]) - cur[:, 16:]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        errs.append((net(nxt[:, :16]) - nxt[:, 16:]).pow(2).mean().item())
    if day % 20 == 19:
        print(f"day {day + 1}: train {loss.item():.4f}  next-day mse (mean of last 20) {sum(errs[-20:]) / 20:.4f}")
