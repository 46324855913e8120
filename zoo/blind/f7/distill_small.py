"""Distil an MLP teacher into a small student; momentum is warmed up together with training."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(d, h, c):
    return nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, c))


class Blobs:
    def __init__(self, classes=8, dim=16, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.centers = 2.0 * torch.randn(classes * 3, dim, generator=self.g)
        self.classes, self.dim = classes, dim

    def batch(self, n):
        k = torch.randint(0, len(self.centers), (n,), generator=self.g)
        x = self.centers[k] + torch.randn(n, self.dim, generator=self.g)
        return x, k % self.classes


def train_teacher(data, steps=120):
    teacher = mlp(data.dim, 128, data.classes)
    opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    for _ in range(steps):
        x, y = data.batch(128)
        loss = F.cross_entropy(teacher(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"teacher done, loss {loss.item():.4f}")
    return teacher.eval()


def momentum_at(step, total, start=0.5, end=0.99):
    return min(1.0, start + (end - start) * 2.0 * step / total)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=450)
    ap.add_argument("--temp", type=float, default=3.0)
    ap.add_argument("--lr", type=float, default=0.1)
    args = ap.parse_args()
    torch.manual_seed(0)
    data = Blobs()
    teacher = train_teacher(data)
    student = mlp(data.dim, 32, data.classes)
    opt = torch.optim.SGD(student.parameters(), lr=args.lr, momentum=0.5)
    for step in range(args.steps):
        for group in opt.param_groups:
            group["momentum"] = momentum_at(step, args.steps)
        x, y = data.batch(64)
        with torch.no_grad():
            soft = F.softmax(teacher(x) / args.temp, 1)
        out = student(x)
        kd = F.kl_div(F.log_softmax(out / args.temp, 1), soft, reduction="batchmean") * args.temp ** 2
        loss = 0.7 * kd + 0.3 * F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} acc {(out.argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
