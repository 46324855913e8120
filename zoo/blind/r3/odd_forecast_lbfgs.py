"""Small full-batch forecaster fitted with L-BFGS: every step is one call with a closure."""
import math
import torch
import torch.nn as nn

torch.manual_seed(0)
T = 1500
t = torch.arange(T, dtype=torch.float64)
series = torch.sin(2 * math.pi * t / 18) * (1 + 0.3 * torch.sin(2 * math.pi * t / 90)) + 0.05 * torch.randn(T, dtype=torch.float64)
LAG, H = 24, [1, 4, 9]
win = series.unfold(0, LAG + max(H), 1)
x, y = win[:, :LAG], win[:, [LAG - 1 + h for h in H]]
x_tr, y_tr, x_va, y_va = x[:1100], y[:1100], x[1140:], y[1140:]

model = nn.Sequential(nn.Linear(LAG, 20), nn.Tanh(), nn.Linear(20, len(H))).double()
optim = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=12, history_size=20, line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    optim.zero_grad()
    loss = ((model(x_tr) - y_tr) ** 2).mean() + 1e-5 * sum((p ** 2).sum() for p in model.parameters())
    loss.backward()
    return loss


for step in range(20):
    loss = optim.step(closure)
    if step % 3 == 0 or step == 19:
        with torch.no_grad():
            rmse = ((model(x_va) - y_va) ** 2).mean(0).sqrt().tolist()
        print(f"step {step} ({calls} evaluations) loss {loss.item():.5f} val rmse " + " ".join(f"{r:.3f}" for r in rmse))
