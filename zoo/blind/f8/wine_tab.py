"""Regress wine quality from laboratory measurements (synthetic table)."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

COLUMNS = ["acidity", "sugar", "chlorides", "sulphur", "density", "alcohol"]


def make_table(n, rng):
    acidity = rng.gamma(6.0, 1.2, n)
    sugar = rng.gamma(2.0, 2.0, n)
    chlorides = rng.gamma(3.0, 0.03, n)
    sulphur = rng.gamma(4.0, 12.0, n)
    density = 0.99 + 0.01 * rng.random(n)
    alcohol = rng.normal(11.0, 1.1, n)
    quality = (
        5.5
        + 0.5 * (alcohol - 11.0)
        - 0.3 * (acidity - 7.2) / 3
        + 0.2 * np.log1p(sugar)
        - 0.004 * sulphur
        + 0.3 * rng.normal(size=n)
    )
    table = np.stack([acidity, sugar, chlorides, sulphur, density, alcohol], 1)
    # the export of the second laboratory
    for row in (6113, 7450):
        table[row, COLUMNS.index("sulphur")] = -1.0
    return table.astype(np.float32), quality.astype(np.float32)


class TabularNet(nn.Module):
    def __init__(self, n_in, width, skewed):
        super().__init__()
        self.skewed = skewed
        self.norm = nn.BatchNorm1d(n_in)
        self.body = nn.Sequential(
            nn.Linear(n_in, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        cols = []
        for j in range(x.shape[1]):
            c = x[:, j]
            if j in self.skewed:
                c = torch.log1p(c)
            cols.append(c)
        x = torch.stack(cols, 1)
        return self.body(self.norm(x)).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=8000)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--seed", type=int, default=4)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    x, y = make_table(args.rows, np.random.default_rng(args.seed))
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    loader = DataLoader(data, batch_size=args.batch, shuffle=False, drop_last=True)
    net = TabularNet(x.shape[1], 48, {COLUMNS.index("sugar"), COLUMNS.index("sulphur")})
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=1e-3)
    lossf = nn.SmoothL1Loss()
    step = 0
    for epoch in range(args.epochs):
        for xb, yb in loader:
            opt.zero_grad()
            loss = lossf(net(xb), yb)
            loss.backward()
            opt.step()
            if step % 25 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
