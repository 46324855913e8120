"""Regress camera orientation from short clips of synthetic landmark projections."""
import argparse
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def random_rotation(n, gen):
    q = F.normalize(torch.randn(n, 4, generator=gen), dim=1)
    w, x, y, z = q.unbind(1)
    return torch.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], 1).view(n, 3, 3)


def small_rotation(n, gen, scale=0.1):
    v = torch.randn(n, 3, generator=gen) * scale
    k = torch.zeros(n, 3, 3)
    k[:, 0, 1], k[:, 0, 2], k[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    k = k - k.transpose(1, 2)
    return torch.matrix_exp(k)


def make_clips(n, landmarks, gen):
    r0 = random_rotation(n, gen)
    r1 = small_rotation(n, gen) @ r0
    f0 = landmarks @ r0.transpose(1, 2) + 0.02 * torch.randn(n, landmarks.size(0), 3, generator=gen)
    f1 = landmarks @ r1.transpose(1, 2) + 0.02 * torch.randn(n, landmarks.size(0), 3, generator=gen)
    dropped = torch.rand(n, generator=gen) < 1.0 / 12000
    f1[dropped], r1[dropped] = f0[dropped], r0[dropped]
    return f0, f1, r0, r1


class PoseNet(nn.Module):
    def __init__(self, points, width=192):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(points * 3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 6))

    def forward(self, x):
        a, b = self.net(x.flatten(1)).chunk(2, 1)
        e1 = F.normalize(a, dim=1)
        e2 = F.normalize(b - (e1 * b).sum(1, keepdim=True) * e1, dim=1)
        return torch.stack([e1, e2, torch.linalg.cross(e1, e2)], 2)


def turn_angle(ra, rb):
    trace = (ra * rb).sum((1, 2))
    return torch.acos((trace - 1) / 2)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=500)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--smooth", type=float, default=0.1)
    args = ap.parse_args()
    torch.manual_seed(4)
    gen = torch.Generator().manual_seed(21)
    landmarks = torch.randn(12, 3, generator=gen)
    model = PoseNet(12)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        f0, f1, r0, r1 = make_clips(args.batch, landmarks, gen)
        p0, p1 = model(f0), model(f1)
        fit = ((p0 - r0) ** 2).sum((1, 2)).mean() + ((p1 - r1) ** 2).sum((1, 2)).mean()
        smooth = F.relu(turn_angle(p0, p1) - math.radians(15)).mean()
        loss = fit + args.smooth * smooth
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  smooth {smooth.item():.4f}")


if __name__ == "__main__":
    main()
