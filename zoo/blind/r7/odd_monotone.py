"""Monotone network: after each step negative weights are clamped to zero by hand to keep a guarantee."""
import torch
import torch.nn as nn

torch.manual_seed(19)
torch.set_num_threads(1)


def dose_response(x):
    return torch.sigmoid(4 * (x[:, :1] - 0.5)) + 0.5 * x[:, 1:2] ** 2 + 0.3 * x[:, 2:]


def make(n):
    x = torch.rand(n, 3)
    return x, dose_response(x) + 0.05 * torch.randn(n, 1)


(x_train, y_train), (x_val, y_val), (x_test, y_test) = make(1500), make(400), make(600)


class Monotone(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, width), nn.Linear(width, width), nn.Linear(width, 1)
        with torch.no_grad():
            for layer in (self.a, self.b, self.c):
                layer.weight.abs_().mul_(0.5)
            self.a.bias.copy_(-torch.rand(width) * 0.7)

    def forward(self, x):
        h = torch.tanh(self.a(x) * 2)
        return self.c(torch.tanh(self.b(h)))

    @torch.no_grad()
    def project(self):
        for layer in (self.a, self.b, self.c):
            layer.weight.clamp_(min=0.0)


net = Monotone()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(24):
    perm, total = torch.randperm(len(x_train)), 0.0
    for i in range(0, len(perm), 50):
        rows = perm[i:i + 50]
        loss = (net(x_train[rows]) - y_train[rows]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        net.project()
        total += loss.item() * len(rows)
    if epoch % 3 == 2:
        with torch.no_grad():
            val = (net(x_val) - y_val).pow(2).mean().item()
        zero = (net.b.weight == 0).float().mean().item()
        print(f"epoch {epoch:2d} train {total / len(perm):.5f} val {val:.5f} zero weights in layer b {zero:.2f}")

x = x_test.clone().requires_grad_(True)
slope, = torch.autograd.grad(net(x).sum(), x)
with torch.no_grad():
    mse = (net(x_test) - y_test).pow(2).mean().item()
print(f"smallest slope on the test set {slope.min().item():.4f}")
print(f"test mse {mse:.5f} (noise 0.00250, variance {y_test.var().item():.4f})")
