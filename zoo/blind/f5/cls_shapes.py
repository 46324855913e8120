"""Image classification of simple shapes with a polynomial learning-rate decay."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(83)
torch.set_num_threads(1)

SIZE, CLASSES, N, BATCH, EPOCHS = 20, 4, 1500, 32, 5


def draw(n):
    g = torch.Generator().manual_seed(21)
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    yy, xx = yy[None].float(), xx[None].float()
    cx = 6 + 8 * torch.rand(n, 1, 1, generator=g)
    cy = 6 + 8 * torch.rand(n, 1, 1, generator=g)
    r = 3 + 2 * torch.rand(n, 1, 1, generator=g)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    dx, dy = (xx - cx).abs(), (yy - cy).abs()
    forms = torch.stack([
        (dx ** 2 + dy ** 2 < r ** 2), (torch.maximum(dx, dy) < r * 0.85),
        (dx + dy < r * 1.2), ((dx < 1.2) | (dy < 1.2)) & (torch.maximum(dx, dy) < r),
    ], 1).float()
    img = forms[torch.arange(n), y] + 0.1 * torch.randn(n, SIZE, SIZE, generator=g)
    return img.unsqueeze(1), y


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(32 * 25, CLASSES)

    def forward(self, x):
        return self.fc(self.body(x).flatten(1))


class PolyDecay:
    def __init__(self, opt, base, total, power=0.9):
        self.opt, self.base, self.total, self.power = opt, base, total, power
        self.k = 0

    def step(self):
        self.k += 1
        lr = self.base * np.power(1.0 - self.k / self.total, self.power)
        for g in self.opt.param_groups:
            g["lr"] = float(lr)


def main():
    images, labels = draw(N)
    loader = DataLoader(TensorDataset(images, labels), batch_size=BATCH, shuffle=True,
                        generator=torch.Generator().manual_seed(0))
    net = ConvNet()
    base = 0.01
    opt = torch.optim.SGD(net.parameters(), lr=base, momentum=0.9)
    sched = PolyDecay(opt, base, total=EPOCHS * (N // BATCH))
    step = 0
    for epoch in range(EPOCHS):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            if step % 10 == 0 or step > 225:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} lr {opt.param_groups[0]['lr']:.5f}")
            step += 1
    net.eval()
    with torch.no_grad():
        acc = (net(images).argmax(1) == labels).float().mean().item()
    print("training accuracy", acc)


if __name__ == "__main__":
    main()
