"""2x super-resolution of small grey images, residual CNN on top of bicubic upsampling."""
import copy
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(7)
torch.set_num_threads(1)

EPOCHS = 13
BATCH = 16
SIZE = 24


def draw(n, seed):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(SIZE).float(), torch.arange(SIZE).float(), indexing="ij")
    out = torch.zeros(n, 1, SIZE, SIZE)
    for i in range(n):
        img = torch.full((SIZE, SIZE), 0.15)
        for _ in range(3):
            cy, cx, r, kind = torch.rand(4, generator=g).tolist()
            cy, cx, r = cy * SIZE, cx * SIZE, 2 + 5 * r
            if kind < 0.5:
                d = r - ((yy - cy) ** 2 + (xx - cx) ** 2).sqrt()
            else:
                d = torch.minimum(r - (yy - cy).abs(), 0.6 * r - (xx - cx).abs())
            img = torch.maximum(img, 0.15 + 0.7 * torch.sigmoid(4 * d))
        out[i, 0] = img
    return out


class Pairs(Dataset):
    def __init__(self, images, augment):
        self.hi = images
        self.lo = F.avg_pool2d(images, 2)
        self.augment = augment

    def __len__(self):
        return len(self.hi)

    def __getitem__(self, i):
        lo, hi = self.lo[i], self.hi[i]
        if self.augment:
            if torch.rand(()) < 0.5:
                lo, hi = lo.flip(-1), hi.flip(-1)
            if torch.rand(()) < 0.5:
                lo, hi = lo.flip(-2), hi.flip(-2)
        return lo, hi


class Block(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.c1 = nn.Conv2d(ch, ch, 3, padding=1)
        self.bn = nn.BatchNorm2d(ch)
        self.c2 = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        return x + self.c2(F.relu(self.bn(self.c1(x))))


class SRNet(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.head = nn.Conv2d(1, ch, 3, padding=1)
        self.body = nn.Sequential(Block(ch), Block(ch))
        self.tail = nn.Conv2d(ch, 4, 3, padding=1)
        nn.init.zeros_(self.tail.weight)
        nn.init.zeros_(self.tail.bias)

    def forward(self, x):
        up = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        h = self.tail(F.leaky_relu(self.body(self.head(x - 0.5)), 0.2))
        return up + F.pixel_shuffle(h, 2)


class Average:
    """Exponential moving average of a network, used for validation."""

    def __init__(self, net, decay=0.97):
        self.net = copy.deepcopy(net).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, net):
        for a, p in zip(self.net.parameters(), net.parameters()):
            a.lerp_(p, 1 - self.decay)
        for a, b in zip(self.net.buffers(), net.buffers()):
            a.copy_(b)


def psnr(a, b):
    mse = ((a - b) ** 2).flatten(1).mean(1)
    return (-10 * torch.log10(mse)).mean().item()


@torch.no_grad()
def validate(net, loader):
    tot, base, n = 0.0, 0.0, 0
    for lo, hi in loader:
        out = net(lo).clamp(0, 1)
        bic = F.interpolate(lo, scale_factor=2, mode="bicubic", align_corners=False).clamp(0, 1)
        tot += psnr(out, hi) * len(lo)
        base += psnr(bic, hi) * len(lo)
        n += len(lo)
    return tot / n, base / n


def main():
    train = DataLoader(Pairs(draw(480, 1), True), batch_size=BATCH, shuffle=True)
    val = DataLoader(Pairs(draw(96, 2), False), batch_size=64)
    net = SRNet()
    avg = Average(net)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=5, gamma=0.5)
    best = -1.0
    folder = tempfile.mkdtemp()
    for epoch in range(EPOCHS):
        net.train()
        run = 0.0
        for lo, hi in train:
            loss = F.mse_loss(net(lo), hi)
            opt.zero_grad()
            loss.backward()
            opt.step()
            avg.update(net)
            run += loss.item()
        sched.step()
        score, bic = validate(avg.net, val)
        if score > best:
            best = score
            torch.save(avg.net.state_dict(), os.path.join(folder, "best.pt"))
        print(f"epoch {epoch:2d}  train MSE {run / len(train):.5f}  val PSNR {score:.2f} dB  (bicubic {bic:.2f})")
    print(f"final: best val PSNR {best:.2f} dB, last {score:.2f} dB, bicubic {bic:.2f} dB")


if __name__ == "__main__":
    main()
