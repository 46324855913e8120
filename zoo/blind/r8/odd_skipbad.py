"""Sensor data with broken records: batches with non-finite values and steps with an absurd gradient are skipped on purpose."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(10)
w = torch.randn(10)


def data(n, broken):
    x = torch.randn(n, 10)
    y = torch.sin(x @ w / 2) + 0.3 * x[:, 0] + 0.05 * torch.randn(n)
    if broken:
        hit = torch.randperm(n)[: n // 250]
        x[hit[: len(hit) // 2], 3] = float("nan")
        x[hit[len(hit) // 2:], 5] = 1e7
    return x, y


x_tr, y_tr = data(6000, True)
x_va, y_va = data(1500, False)
net = nn.Sequential(nn.Linear(10, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(9):
    run, used, nonfinite, absurd = 0.0, 0, 0, 0
    for idx in torch.randperm(len(x_tr)).split(32):
        loss = F.mse_loss(net(x_tr[idx]).squeeze(1), y_tr[idx])
        opt.zero_grad()
        if not torch.isfinite(loss):
            nonfinite += 1
            continue
        loss.backward()
        if nn.utils.clip_grad_norm_(net.parameters(), 1.0) > 1e3:
            absurd += 1
            continue
        opt.step()
        run += loss.item()
        used += 1
    with torch.no_grad():
        val = F.mse_loss(net(x_va).squeeze(1), y_va)
    print(f"epoch {epoch:2d} used {used} skipped {nonfinite} non-finite, {absurd} absurd | train {run / used:.4f} val {val:.4f} "
          f"r2 {1 - val / y_va.var():.3f}")
