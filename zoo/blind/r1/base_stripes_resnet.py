import copy
import math

import torch
from torch import nn

torch.manual_seed(11)


def make_textures(n):
    """6 classes = 3 orientations x 2 frequencies of coloured stripes with noise"""
    y = torch.randint(0, 6, (n,))
    g = torch.linspace(-1, 1, 12)
    yy, xx = torch.meshgrid(g, g, indexing="ij")
    ang = (y % 3).float() * math.pi / 3 + 0.15 * torch.randn(n)
    freq = torch.where(y < 3, 5.0, 9.0) + 0.4 * torch.randn(n)
    phase = 2 * math.pi * torch.rand(n)
    t = torch.cos(ang)[:, None, None] * xx + torch.sin(ang)[:, None, None] * yy
    wave = torch.sin(freq[:, None, None] * t + phase[:, None, None])
    colour = torch.rand(n, 3, 1, 1) * 0.8 + 0.2
    return (colour * wave[:, None] + 0.5 * torch.randn(n, 3, 12, 12)) * 1.5 + 2.0, y


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.short = nn.Identity() if cin == cout and stride == 1 else nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        h = torch.relu(self.bn1(self.conv1(x)))
        h = self.bn2(self.conv2(h))
        return torch.relu(h + self.short(x))


class TinyResNet(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        widths = [(8, 8, 1), (8, 16, 2), (16, 24, 2)]
        self.blocks = nn.ModuleList([Block(a, b, s) for a, b, s in widths])
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = b(x)
        return self.head(x.mean(dim=(2, 3)))


class Ema:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.model.state_dict().values(), model.state_dict().values()):
            if e.dtype.is_floating_point:
                e.mul_(self.decay).add_(p, alpha=1 - self.decay)
            else:
                e.copy_(p)


x_train, y_train = make_textures(750)
x_val, y_val = make_textures(300)
model = TinyResNet()
ema = Ema(model, decay=0.95)
epochs, bs = 5, 30
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=epochs * (len(x_train) // bs))
criterion = nn.CrossEntropyLoss()

for epoch in range(epochs):
    model.train()
    order = torch.randperm(len(x_train))
    running = 0.0
    for i in range(0, len(order), bs):
        idx = order[i:i + bs]
        loss = criterion(model(x_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        ema.update(model)
        running += loss.item()
    ema.model.eval()
    with torch.no_grad():
        out = ema.model(x_val)
        vloss = criterion(out, y_val)
        acc = (out.argmax(1) == y_val).float().mean()
    print("[%d] loss %.3f | val loss %.3f val acc %.3f" % (epoch + 1, running / (len(order) // bs), vloss, acc))
