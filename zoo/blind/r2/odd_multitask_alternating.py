# two tasks, two optimizers, trained in turns; one head has no gradient in every other step, and task B starts late
import torch
from torch import nn

torch.manual_seed(13)
X = torch.randn(1500, 10)
wa, wb = torch.randn(10), torch.randn(10, 3)
YA = torch.tanh(X @ wa / 3) + 0.05 * torch.randn(1500)
YB = (X @ wb + 0.3 * torch.randn(1500, 3)).argmax(1)
tr, va = slice(0, 1200), slice(1200, 1500)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU())
        self.a, self.b = nn.Linear(40, 1), nn.Linear(40, 3)


net = Net()
opt_a = torch.optim.Adam(list(net.trunk.parameters()) + list(net.a.parameters()), lr=3e-3)
opt_b = torch.optim.Adam(list(net.trunk.parameters()) + list(net.b.parameters()), lr=3e-3)
la = lb = torch.tensor(float("inf"))
for step in range(480):
    i = torch.randint(0, 1200, (64,))
    if step % 2 == 0 or step < 60:
        la = (net.a(net.trunk(X[i])).squeeze(1) - YA[i]).pow(2).mean()
        opt_a.zero_grad(set_to_none=True)
        la.backward()
        opt_a.step()
    else:
        lb = nn.functional.cross_entropy(net.b(net.trunk(X[i])), YB[i])
        opt_b.zero_grad(set_to_none=True)
        lb.backward()
        opt_b.step()
    if step % 60 == 59:
        with torch.no_grad():
            h = net.trunk(X[va])
            mse = (net.a(h).squeeze(1) - YA[va]).pow(2).mean()
            acc = (net.b(h).argmax(1) == YB[va]).float().mean()
        print(f"step {step + 1} A {la.item():.4f} B {lb.item():.4f} | val mse {mse:.4f} (var {YA[va].var():.3f}) acc {acc:.3f}")
