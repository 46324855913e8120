"""Defect detection with few defects: the training split (only) is filled up with copies of the defect rows."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, ConcatDataset, Subset


def make(n, rng):
    y = (rng.random(n) < 0.05).astype("int64")
    x = rng.normal(size=(n, 16)).astype("float32")
    x[:, :5] += 1.3 * y[:, None]
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


def main(args):
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    full = make(3200, rng)
    order = rng.permutation(len(full))
    train_idx, val_idx = order[:2400], order[2400:]
    y = full.tensors[1].numpy()
    defects = train_idx[y[train_idx] == 1]
    train = ConcatDataset([Subset(full, train_idx)] + [Subset(full, defects)] * args.copies)
    print(f"{len(train_idx)} training rows with {len(defects)} defects, {len(train)} after oversampling")
    train_loader = DataLoader(train, batch_size=64, shuffle=True)
    val_loader = DataLoader(Subset(full, val_idx), batch_size=200)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for xb, yb in train_loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        model.eval()
        conf = torch.zeros(2, 2)
        with torch.no_grad():
            for xb, yb in val_loader:
                for t, p in zip(yb, model(xb).argmax(1)):
                    conf[t, p] += 1
        rec = conf.diag() / conf.sum(1)
        print(f"epoch {epoch} train loss {np.mean(losses):.3f} val recall ok {rec[0]:.3f} defect {rec[1]:.3f} balanced {rec.mean():.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--copies", type=int, default=18)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--seed", type=int, default=0)
    main(p.parse_args())
