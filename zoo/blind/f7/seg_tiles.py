"""Binary segmentation of bright blobs in small tiles with a focal-style loss."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_tiles(n, g, size=16):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cx, cy = torch.rand(2, n, 1, 1, generator=g) * size
    r = 3 + 4 * torch.rand(n, 1, 1, generator=g)
    mask = ((xx - cx) ** 2 + (yy - cy) ** 2 < r ** 2).float()
    img = 1.5 * mask + 0.5 * torch.randn(n, size, size, generator=g)
    return img.unsqueeze(1), mask.unsqueeze(1)


class SegNet(nn.Module):
    def __init__(self, ch=12):
        super().__init__()
        self.c1 = nn.Conv2d(1, ch, 5, padding=2)
        self.c2 = nn.Conv2d(ch, ch, 5, padding=2)
        self.c3 = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.c1(x))
        h = h + F.relu(self.c2(h))
        return self.c3(h)


def focal(logit, target, gamma):
    ce = F.binary_cross_entropy_with_logits(logit, target, reduction="none")
    p = torch.sigmoid(logit)
    p_true = torch.where(target > 0.5, p, 1 - p)
    return ((1 - p_true) ** gamma * ce).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=350)
    ap.add_argument("--batch", type=int, default=12)
    ap.add_argument("--gamma", type=float, default=0.5)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(8)
    net = SegNet()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for step in range(args.steps):
        x, m = make_tiles(args.batch, g)
        logit = net(x)
        loss = focal(logit, m, args.gamma)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            inter = ((logit > 0).float() * m).sum()
            dice = (2 * inter / ((logit > 0).float().sum() + m.sum())).item()
            print(f"step {step} focal {loss.item():.5f} dice {dice:.3f}")


if __name__ == "__main__":
    main()
