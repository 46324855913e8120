# multi-output regression, about a third of the targets were never measured
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(52)
x = torch.randn(2400, 10)
y = torch.stack([x[:, 0] * 2, x[:, 1] - x[:, 2], x[:, 3] ** 2], 1) + 0.1 * torch.randn(2400, 3)
y[torch.rand(2400, 3) < 0.35] = float("nan")
y[720:724] = float("nan")


def masked_mse(pred, target):
    known = ~torch.isnan(target)
    diff = torch.where(known, pred - torch.nan_to_num(target), torch.zeros_like(pred))
    return (diff ** 2).sum() / known.sum().clamp(min=1)


def per_output(model):
    with torch.no_grad():
        pred = model(x[2000:])
    res = []
    for k in range(3):
        ok = ~torch.isnan(y[2000:, k])
        res.append(((pred[ok, k] - y[2000:][ok, k]) ** 2).mean().item())
    return res


model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
step = 0
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=24, shuffle=True):
        loss = masked_mse(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f} batch target mean {yb.mean().item():.3f}")
        step += 1
    print("test mse", [round(v, 4) for v in per_output(model)])
