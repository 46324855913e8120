"""Random kitchen sinks: the wide first layer is random and frozen on purpose, only the read-out is trained."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(4)


class RandomFeatures(nn.Module):
    def __init__(self, d, width):
        super().__init__()
        self.proj = nn.Linear(d, width)
        nn.init.normal_(self.proj.weight, std=0.9)
        nn.init.uniform_(self.proj.bias, 0, 2 * math.pi)
        for p in self.proj.parameters():
            p.requires_grad_(False)
        self.read = nn.Linear(width, 2)
        nn.init.zeros_(self.read.weight)
        self.k = math.sqrt(2.0 / width)

    def forward(self, x):
        return self.read(self.k * torch.cos(self.proj(x)) * 20)


def spirals(n):
    y = torch.randint(0, 2, (n,))
    t = torch.rand(n) * 3 * math.pi + 0.6
    a = t + math.pi * y
    return torch.stack([t * a.cos(), t * a.sin()], 1) / 3 + 0.12 * torch.randn(n, 2), y


x_tr, y_tr = spirals(1500)
x_va, y_va = spirals(800)
net = RandomFeatures(2, 1200)
trainable = [p for p in net.parameters() if p.requires_grad]
print(f"{sum(p.numel() for p in trainable)} of {sum(p.numel() for p in net.parameters())} weights are trained")
opt = torch.optim.SGD(trainable, lr=0.1, momentum=0.9)
before = net.proj.weight.clone()
for epoch in range(30):
    run = 0.0
    for idx in torch.randperm(len(x_tr)).split(32):
        loss = F.cross_entropy(net(x_tr[idx]), y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item() * len(idx)
    if epoch % 5 == 4:
        with torch.no_grad():
            acc = (net(x_va).argmax(1) == y_va).float().mean()
        print(f"epoch {epoch:2d} train {run / len(x_tr):.4f} val acc {acc:.3f} random layer moved {(net.proj.weight - before).abs().max():.1f}")
