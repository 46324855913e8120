"""Embedding network for product photos' descriptors, batch-hard triplets."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_split(n_classes=24, per_class=30, dim=40, seed=0):
    rng = np.random.RandomState(seed)
    centers = rng.randn(n_classes, 5)
    mix = rng.randn(5, dim) / np.sqrt(5)
    nuis = rng.randn(8, dim)
    feats, labels = [], []
    for c in range(n_classes):
        z = centers[c] + 0.25 * rng.randn(per_class, 5)
        feats.append(np.tanh(z @ mix) + 0.6 * rng.randn(per_class, 8) @ nuis + 0.1 * rng.randn(per_class, dim))
        labels.append(np.full(per_class, c))
    x = np.stack(feats).astype("float32")
    x = (x - x.mean((0, 1))) / x.std((0, 1))
    y = np.stack(labels)
    return (x[:, :20], y[:, :20]), (x[:, 20:], y[:, 20:])


class Encoder(nn.Module):
    def __init__(self, dim, emb=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, emb))

    def forward(self, x):
        return F.normalize(self.body(x), dim=1)


def batch_hard(emb, labels, margin):
    sim = emb @ emb.t()
    dist = (2 - 2 * sim).clamp(min=1e-6).sqrt()
    same = labels[:, None] == labels[None, :]
    d_ap = dist.masked_fill(~same, 0.0).max(dim=1).values
    d_an = dist.masked_fill(same, 10.0).min(dim=1).values
    return F.relu(d_ap - d_an + margin).mean()


def pk_batch(x, rng, p, k):
    classes = rng.choice(len(x), p, replace=False)
    rows = [x[c][rng.choice(x.shape[1], k, replace=False)] for c in classes]
    data = torch.from_numpy(np.concatenate(rows))
    labels = torch.from_numpy(np.repeat(classes, k))
    return data, labels


@torch.no_grad()
def recall_at_1(embed, gallery, query):
    gx, gy = torch.from_numpy(gallery[0]).flatten(0, 1), torch.from_numpy(gallery[1]).flatten()
    qx, qy = torch.from_numpy(query[0]).flatten(0, 1), torch.from_numpy(query[1]).flatten()
    nearest = torch.cdist(embed(qx), embed(gx)).argmin(1)
    return (gy[nearest] == qy).float().mean().item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--margin", type=float, default=0.3)
    ap.add_argument("--steps", type=int, default=400)
    args = ap.parse_args()
    torch.manual_seed(0)
    rng = np.random.RandomState(1)
    train, test = make_split()
    net = Encoder(train[0].shape[-1])
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    print(f"recall@1 of raw descriptors {recall_at_1(lambda t: t, train, test):.3f}")
    running = 0.0
    for step in range(1, args.steps + 1):
        xb, yb = pk_batch(train[0], rng, p=12, k=4)
        loss = batch_hard(net(xb), yb, args.margin)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {running / 50:.4f}  recall@1 {recall_at_1(net, train, test):.3f}")
            running = 0.0
