"""Linear model on raw features with a summed loss: a learning rate near 1e-8 is right, a little more blows up."""
import torch

torch.manual_seed(9)
torch.set_num_threads(1)

N = 2000
# raw units on purpose: the point is the size of the curvature
# floor area in m2, distance in m, both in raw units, and a summed loss
area = 60 + 25 * torch.randn(N, dtype=torch.float64)
dist = 300 * torch.rand(N, dtype=torch.float64)
garden = 100 * torch.rand(N, dtype=torch.float64)
X = torch.stack([area, dist, garden], 1)
true_w = torch.tensor([3.0, -0.4, 1.2], dtype=torch.float64)
y = X @ true_w + 10 * torch.randn(N, dtype=torch.float64)

X_train, y_train = X[:1400], y[:1400]
X_val, y_val = X[1400:1700], y[1400:1700]
X_test, y_test = X[1700:], y[1700:]

largest = torch.linalg.eigvalsh(2 * X_train.t() @ X_train)[-1].item()
LR = 1.5 / largest
print(f"largest curvature {largest:.3e}; stable below {2 / largest:.3e}; lr used {LR:.3e}")

w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
opt = torch.optim.SGD([w], lr=LR)


def r2(X, y):
    with torch.no_grad():
        res = (X @ w - y).pow(2).sum()
    return (1 - res / (y - y.mean()).pow(2).sum()).item()


for step in range(600):
    loss = (X_train @ w - y_train).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (step + 1) % 60 == 0:
        with torch.no_grad():
            val = (X_val @ w - y_val).pow(2).sum().item()
        print(f"step {step + 1} train sum {loss.item():.3e} val sum {val:.3e} val r2 {r2(X_val, y_val):.4f}")

exact = torch.linalg.lstsq(X_train, y_train[:, None]).solution[:, 0]
error = (w.detach() - exact).abs().max().item()
spread = (y_train - X_train @ exact).std().item()
print(f"distance to the exact solution {error:.2e}, noise left {spread:.2f} (true 10.00)")
print("learned", [round(v, 3) for v in w.tolist()], "least squares", [round(v, 3) for v in exact.tolist()])
print(f"test r2 {r2(X_test, y_test):.4f}")
