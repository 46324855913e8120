"""Own optimizer without torch.optim: sign updates with momentum, written by hand on the parameters."""
import torch
import torch.nn as nn

torch.manual_seed(18)
torch.set_num_threads(1)


class SignMomentum:
    """Lion-like: step in the sign of an interpolated momentum, decoupled decay, own schedule."""

    def __init__(self, params, lr, total, b1=0.9, b2=0.98, decay=0.01):
        self.params, self.lr, self.total = list(params), lr, total
        self.b1, self.b2, self.decay, self.t = b1, b2, decay, 0
        self.m = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        lr = self.lr * (1 - self.t / self.total)
        for p, m in zip(self.params, self.m):
            if p.grad is None:
                continue
            direction = (self.b1 * m + (1 - self.b1) * p.grad).sign()
            p.data = p.data * (1 - lr * self.decay) - lr * direction
            m.mul_(self.b2).add_(p.grad, alpha=1 - self.b2)
            p.grad = None
        self.t += 1
        return lr


def make(n):
    x = torch.rand(n, 3) * 4 - 2
    y = torch.sin(x[:, :1] * x[:, 1:2]) + 0.5 * torch.cos(2 * x[:, 2:]) + 0.05 * torch.randn(n, 1)
    return x, y


(x_train, y_train), (x_val, y_val), (x_test, y_test) = make(3000), make(600), make(600)
net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
EPOCHS, BATCH = 16, 60
opt = SignMomentum(net.parameters(), lr=2e-3, total=EPOCHS * (len(x_train) // BATCH))

for epoch in range(EPOCHS):
    perm, total = torch.randperm(len(x_train)), 0.0
    for i in range(0, len(perm), BATCH):
        rows = perm[i:i + BATCH]
        loss = nn.functional.smooth_l1_loss(net(x_train[rows]), y_train[rows])
        loss.backward()
        lr = opt.step()
        total += loss.item() * len(rows)
    with torch.no_grad():
        val = (net(x_val) - y_val).pow(2).mean().item()
    if epoch % 2 == 1:
        print(f"epoch {epoch:2d} lr {lr:.2e} train {total / len(perm):.4f} val mse {val:.4f}")

with torch.no_grad():
    mse = (net(x_test) - y_test).pow(2).mean().item()
print(f"test mse {mse:.4f} r2 {1 - mse / y_test.var().item():.4f}")
