"""Gradual magnitude pruning of an MLP with unit-norm neurons."""
import torch
import torch.nn as nn
import torch.nn.functional as F


DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Pruner:
    def __init__(self, layers, every=15, amount=0.04):
        self.layers = layers
        self.every = every
        self.amount = amount
        self.level = 0.0
        self.masks = [torch.ones_like(l.weight) for l in layers]

    @torch.no_grad()
    def tighten(self):
        self.level = min(0.96, self.level + self.amount)
        for k, layer in enumerate(self.layers):
            w = layer.weight.abs().flatten()
            cut = w.kthvalue(max(1, int(self.level * w.numel()))).values
            self.masks[k] = (layer.weight.abs() > cut).float()

    @torch.no_grad()
    def apply(self):
        for mask, layer in zip(self.masks, self.layers):
            layer.weight.mul_(mask)
            layer.weight.div_(layer.weight.norm(dim=1, keepdim=True))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(20, 40)
        self.b = nn.Linear(40, 40)
        self.out = nn.Linear(40, 4)

    def forward(self, x):
        return self.out(F.relu(self.b(F.relu(self.a(x)))))


def sample(n, teacher, g):
    x = torch.randn(n, 20, generator=g)
    x[:, 8:] *= 0.3
    return x, teacher(x).argmax(1)


torch.manual_seed(64)
g = torch.Generator().manual_seed(64)
teacher = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 4)).requires_grad_(False)
net = MLP().to(DEV)
pruner = Pruner([net.a, net.b])
opt = torch.optim.Adam(net.parameters(), lr=3e-3)

for step in range(400):
    x, y = sample(64, teacher, g)
    x, y = x.to(DEV), y.to(DEV)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step and step % pruner.every == 0:
        pruner.tighten()
    pruner.apply()
    if step % 20 == 0:
        print(f"step {step:3d} loss {loss.item():.4f} sparsity {pruner.level:.2f}")
