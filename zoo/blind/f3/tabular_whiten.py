import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)


class Whiten(nn.Module):
    def __init__(self, n, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.gain = nn.Parameter(torch.ones(n))
        self.shift = nn.Parameter(torch.zeros(n))
        self.register_buffer("m", torch.zeros(n))
        self.register_buffer("s", torch.ones(n))

    def forward(self, x):
        if self.training:
            m = x.mean(dim=0)
            s = x.std(dim=0)
            self.m.lerp_(m.detach(), self.momentum)
            self.s.lerp_(s.detach(), self.momentum)
        else:
            m, s = self.m, self.s
        return (x - m) / (s + self.eps) * self.gain + self.shift


def block(i, o):
    return nn.Sequential(nn.Linear(i, o), Whiten(o), nn.ReLU())


n = 2113
X = torch.randn(n, 16) * torch.logspace(-1, 1, 16)
w = torch.randn(16) / torch.logspace(-1, 1, 16)
Y = (torch.tanh(X @ w) + 0.1 * torch.randn(n) > 0).long()

net = nn.Sequential(block(16, 32), block(32, 32), nn.Linear(32, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)
for epoch in range(2):
    net.train()
    for i, (xb, yb) in enumerate(loader):
        loss = F.cross_entropy(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 30 == 0:
            print("epoch", epoch, "batch", i, "loss", round(loss.item(), 4))
    net.eval()
    with torch.no_grad():
        acc = (net(X).argmax(1) == Y).float().mean().item()
    print("epoch", epoch, "accuracy", round(acc, 4))
