"""Parity of 3 hidden bits: flat loss at ln 2 for a while, then it drops."""
import torch
import torch.nn as nn

torch.manual_seed(7)
N = 32
model = nn.Sequential(nn.Linear(N, 128), nn.ReLU(), nn.Linear(128, 1))
opt = torch.optim.Adam(model.parameters(), lr=1.5e-3)
bce = nn.BCEWithLogitsLoss()


def batch(n):
    x = torch.randint(0, 2, (n, N)).float() * 2 - 1
    return x, (x[:, 2] * x[:, 9] * x[:, 15] > 0).float()


xv, yv = batch(1000)
run = 0.0
for step in range(1, 2601):
    x, y = batch(128)
    loss = bce(model(x).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    run += loss.item() / 200
    if step % 200 == 0:
        with torch.no_grad():
            o = model(xv).squeeze(1)
            acc = ((o > 0).float() == yv).float().mean().item()
            vl = bce(o, yv).item()
        print(f"step {step} loss {run:.4f} val loss {vl:.4f} val acc {acc:.3f}")
        run = 0.0
