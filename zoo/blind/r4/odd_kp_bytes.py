"""Keypoint by soft-argmax; raw 0..255 grey values go straight in, the first layer is a BatchNorm that scales them."""
import torch
import torch.nn as nn

torch.manual_seed(0)
S = 20


def blobs(n):
    grid = torch.arange(S).float()
    p = torch.rand(n, 2) * (S - 6) + 3
    d = (grid[None, None, :] - p[:, 0].view(-1, 1, 1)) ** 2 + (grid[None, :, None] - p[:, 1].view(-1, 1, 1)) ** 2
    img = 180 * torch.exp(-d / 5) + 40 + 25 * torch.randn(n, S, S)
    return img.clamp(0, 255).round().unsqueeze(1), p


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.BatchNorm2d(1, affine=False), nn.Conv2d(1, 10, 5, padding=2), nn.ReLU(), nn.Conv2d(10, 1, 3, padding=1))
        self.temp = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        a = torch.softmax(self.f(x).flatten(1) * self.temp, dim=1).view(-1, S, S)
        g = torch.arange(S).float()
        return torch.stack([(a.sum(1) * g).sum(1), (a.sum(2) * g).sum(1)], 1)


x, p = blobs(600)
vx, vp = blobs(150)
net = Net()
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
for epoch in range(10):
    net.train()
    for i in torch.randperm(600).split(30):
        err = (net(x[i]) - p[i]).abs().sum(1).mean()
        opt.zero_grad()
        err.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        v = (net(vx) - vp).norm(dim=1).mean()
    print(f"epoch {epoch} last batch L1 {err.item():.3f} val distance {v.item():.3f} px")
