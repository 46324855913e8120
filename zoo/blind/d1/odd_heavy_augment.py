import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    """8 texture classes on 12x12 images"""

    def __init__(self, n, seed, train):
        g = np.random.default_rng(seed)
        proto = np.random.default_rng(0).normal(size=(8, 12, 12))
        self.y = g.integers(0, 8, n)
        self.x = (proto[self.y] + 0.8 * g.normal(size=(n, 12, 12))).astype("float32")
        self.train = train

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.x[i]
        if self.train:
            img = img * np.float32(np.random.uniform(0.4, 1.6)) + np.random.normal(0, 1.0, img.shape).astype("float32")
            r, c = np.random.randint(0, 7, 2)
            img[r:r + 6, c:c + 6] = 0.0
        return torch.from_numpy(img).flatten(), int(self.y[i])


def mixup(x, y, alpha=0.8):
    lam = float(np.random.beta(alpha, alpha))
    perm = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


def main():
    np.random.seed(1)
    torch.manual_seed(1)
    train_loader = DataLoader(Blobs(900, 1, True), batch_size=45, shuffle=True)
    val_loader = DataLoader(Blobs(300, 2, False), batch_size=100)
    model = nn.Sequential(nn.Linear(144, 96), nn.ReLU(), nn.Linear(96, 8))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(9):
        model.train()
        tl = 0.0
        for x, y in train_loader:
            x, ya, yb, lam = mixup(x, y)
            out = model(x)
            loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tl += loss.item()
        model.eval()
        ok, vl = 0, 0.0
        with torch.no_grad():
            for x, y in val_loader:
                out = model(x)
                vl += F.cross_entropy(out, y, reduction="sum").item()
                ok += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch + 1} train loss {tl / len(train_loader):.3f} val loss {vl / 300:.3f} val acc {ok / 300:.3f}")


if __name__ == "__main__":
    main()
