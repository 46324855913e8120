#!/usr/bin/env python
"""Domain-adversarial training on a synthetic shifted problem (labels only in the source domain)."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=24)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--n", type=int, default=1600)
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--max-lambda", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.lam * g, None


class Dann(nn.Module):
    def __init__(self, d, width, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(d, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.label_head = nn.Linear(width, classes)
        self.domain_head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, lam=0.0):
        f = self.features(x)
        return self.label_head(f), self.domain_head(Reverse.apply(f, lam)).squeeze(1)


def make_domain(n, target, rng, centres, mix, shift):
    """four classes in a 6-d latent; a style block of 6 columns is class-related in the source only"""
    y = rng.integers(0, 4, n)
    z = centres[y] + rng.normal(0, 0.8, (n, 6))
    if target:
        style = rng.normal(0, 1.0, (n, 6)) + shift
    else:
        style = 0.9 * centres[(y + 1) % 4] + rng.normal(0, 0.8, (n, 6))
    x = np.concatenate([z, style], axis=1) @ mix
    return x.astype(np.float32), y


def lambda_at(step, total, peak):
    p = step / total
    return peak * (2.0 / (1.0 + np.exp(-10.0 * p)) - 1.0)


@torch.no_grad()
def score(model, x, y):
    model.eval()
    logits, _ = model(x)
    return (logits.argmax(1) == y).float().mean().item()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    centres = rng.normal(0, 1.1, (4, 6))
    mix = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    shift = rng.normal(0, 1.5, 6)
    xs, ys = make_domain(args.n, False, rng, centres, mix, shift)
    xt, _ = make_domain(args.n, True, rng, centres, mix, shift)
    xs_val, ys_val = make_domain(500, False, rng, centres, mix, shift)
    xt_test, yt_test = make_domain(800, True, rng, centres, mix, shift)
    mu, sd = xs.mean(0), xs.std(0)
    xs, xt, xs_val, xt_test = [torch.from_numpy((a - mu) / sd) for a in (xs, xt, xs_val, xt_test)]
    ys, ys_val, yt_test = [torch.from_numpy(a) for a in (ys, ys_val, yt_test)]

    src = DataLoader(TensorDataset(xs, ys), batch_size=args.batch_size, shuffle=True, drop_last=True)
    tgt = DataLoader(TensorDataset(xt), batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = Dann(xs.shape[1], args.width, 4)
    groups = [
        {"params": model.features.parameters()},
        {"params": model.label_head.parameters()},
        {"params": model.domain_head.parameters()},
    ]
    optimizer = torch.optim.Adam(groups, lr=args.lr, betas=(0.5, 0.999))
    ce, bce = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()
    total = args.epochs * len(src)
    step = 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        sums = np.zeros(3)
        for (bx, by), (tx,) in zip(src, tgt):
            lam = lambda_at(step, total, args.max_lambda)
            logits, dom_s = model(bx, lam)
            _, dom_t = model(tx, lam)
            loss_y = ce(logits, by)
            loss_d = bce(dom_s, torch.zeros_like(dom_s)) + bce(dom_t, torch.ones_like(dom_t))
            loss = loss_y + loss_d
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            right = ((dom_s < 0).float().mean() + (dom_t > 0).float().mean()) / 2
            sums += [loss_y.item(), loss_d.item(), right.item()]
        sums /= len(src)
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d} lambda {lam:.2f} label {sums[0]:.4f} domain {sums[1]:.4f} dom-acc {sums[2]:.3f} "
                  f"source val {score(model, xs_val, ys_val):.3f} target {score(model, xt_test, yt_test):.3f}")
    print(f"RESULT source={score(model, xs_val, ys_val):.4f} target={score(model, xt_test, yt_test):.4f}")


if __name__ == "__main__":
    main()
