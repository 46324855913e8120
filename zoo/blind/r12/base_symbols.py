import argparse
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    p = argparse.ArgumentParser("tiny ViT on symbol pairs")
    p.add_argument("--epochs", type=int, default=7)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--wd", type=float, default=0.02)
    p.add_argument("--dim", type=int, default=48)
    p.add_argument("--depth", type=int, default=2)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--drop", type=float, default=0.1)
    p.add_argument("--n-train", type=int, default=4000)
    p.add_argument("--n-val", type=int, default=800)
    p.add_argument("--seed", type=int, default=7)
    return p.parse_args()


GLYPHS = [
    ["#####", "#...#", "#...#", "#...#", "#####"],
    ["..#..", "..#..", "#####", "..#..", "..#.."],
    ["#...#", ".#.#.", "..#..", ".#.#.", "#...#"],
]


def make_images(n, rng):
    """Two symbols are placed in a 20x20 image. The label says which symbol is in the
    upper half (3 kinds) and whether it stands left or right of the lower one (2)."""
    glyphs = np.array([[[c == "#" for c in row] for row in g] for g in GLYPHS], dtype=np.float32)
    x = rng.normal(0, 0.15, (n, 1, 20, 20)).astype(np.float32)
    y = np.zeros(n, dtype=np.int64)
    for i in range(n):
        a, b = rng.choice(3, 2, replace=False)
        side = rng.integers(2)
        ra, rb = rng.integers(0, 4), rng.integers(10, 14)
        ca, cb = rng.integers(0, 4), rng.integers(10, 14)
        if side:
            ca, cb = cb, ca
        x[i, 0, ra:ra + 5, ca:ca + 5] += glyphs[a] * rng.uniform(0.7, 1.3)
        x[i, 0, rb:rb + 5, cb:cb + 5] += glyphs[b] * rng.uniform(0.7, 1.3)
        y[i] = a * 2 + side
    return torch.from_numpy(x), torch.from_numpy(y)


class Block(nn.Module):
    def __init__(self, dim, heads, drop):
        super().__init__()
        self.n1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, dropout=drop, batch_first=True)
        self.n2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(drop), nn.Linear(2 * dim, dim))
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        h = self.n1(x)
        x = x + self.drop(self.attn(h, h, h, need_weights=False)[0])
        return x + self.drop(self.mlp(self.n2(x)))


class TinyViT(nn.Module):
    def __init__(self, dim, depth, heads, drop, n_classes=6, patch=5, size=20):
        super().__init__()
        self.n_tokens = (size // patch) ** 2
        self.embed = nn.Conv2d(1, dim, patch, stride=patch)
        self.pos = nn.Parameter(torch.randn(1, self.n_tokens, dim) * 0.1)
        self.drop = nn.Dropout(drop)
        self.blocks = nn.ModuleList([Block(dim, heads, drop) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_classes)

    def forward(self, img):
        x = self.embed(img).flatten(2).transpose(1, 2)
        x = x + self.pos[:, :x.size(1)]
        x = self.drop(x)
        for blk in self.blocks:
            x = blk(x)
        x = self.norm(x).mean(dim=1)
        return self.head(x)


def train_one_epoch(model, loader, optimizer, scheduler):
    model.train()
    total, correct, n = 0.0, 0, 0
    for img, target in loader:
        logits = model(img)
        loss = F.cross_entropy(logits, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(img)
        correct += (logits.argmax(1) == target).sum().item()
        n += len(img)
    return total / n, correct / n


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total, correct, n = 0.0, 0, 0
    for img, target in loader:
        out = model(img)
        total += F.cross_entropy(out, target).item() * len(img)
        correct += (out.argmax(1) == target).sum().item()
        n += len(img)
    return total / n, correct / n


def main():
    args = get_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    xtr, ytr = make_images(args.n_train, rng)
    xva, yva = make_images(args.n_val, rng)
    train_loader = DataLoader(TensorDataset(xtr, ytr), batch_size=args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(TensorDataset(xva, yva), batch_size=200)

    model = TinyViT(args.dim, args.depth, args.heads, args.drop)
    print("params:", sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.wd)
    steps = args.epochs * len(train_loader)
    warmup = 40

    def lr_at(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_at)

    best = 0.0
    for epoch in range(args.epochs):
        tl, ta = train_one_epoch(model, train_loader, optimizer, scheduler)
        vl, va = evaluate(model, val_loader)
        best = max(best, va)
        print(f"[{epoch + 1}/{args.epochs}] train loss {tl:.4f} acc {ta:.3f} | val loss {vl:.4f} acc {va:.3f}")
    print(f"final val acc {va:.4f} (best {best:.4f})")


if __name__ == "__main__":
    main()
