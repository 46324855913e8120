"""Least squares in raw physical units (pressures in Pa around 1e5 after centring): gradients are enormous, so the
learning rate is about 1e-12.
Goal: recover the two physical coefficients within 2 percent."""
import torch

torch.set_num_threads(1)
torch.manual_seed(4)
n = 4000
p = torch.randn(n, 2, dtype=torch.float64) * torch.tensor([9e4, 7e4], dtype=torch.float64)
true = torch.tensor([0.31, -0.12], dtype=torch.float64)
flow = p @ true + 2e3 * torch.randn(n, dtype=torch.float64)
test = slice(3000, n)

print("mean absolute input", p.abs().mean().item(), "mean absolute target", flow.abs().mean().item())

w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
opt = torch.optim.SGD([w], lr=1.5e-12)
for epoch in range(40):
    total = 0.0
    for idx in torch.randperm(3000).split(50):
        loss = ((p[idx] @ w - flow[idx]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    if epoch % 5 == 4:
        with torch.no_grad():
            rmse = ((p[test] @ w - flow[test]) ** 2).mean().sqrt()
        print(f"epoch {epoch + 1} mse {total / 3000:.4e} test rmse {rmse:.1f} m3/h w {[round(v, 4) for v in w.tolist()]}")
print("relative error", [f"{abs(a - b) / abs(b):.4f}" for a, b in zip(w.tolist(), true.tolist())], "noise sd 2000")
