import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WINDOW, HORIZON = 24, 3


def load_series(n=1600, seed=5):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    daily = 4.0 * np.sin(2 * np.pi * t / 24)
    level = np.zeros(n)
    for i in range(1, n):
        level[i] = 0.9 * level[i - 1] + rng.normal(0, 1.0)
    return (60 + 0.012 * t + daily + level + rng.normal(0, 0.7, n)).astype("float32")


def smooth(series, k=7):
    """k-point moving average"""
    padded = np.concatenate([np.full(k - 1, series[0], dtype="float32"), series])
    return np.convolve(padded, np.ones(k, dtype="float32") / k, mode="valid")


class Windows(Dataset):
    """(last WINDOW raw and smoothed readings) -> reading HORIZON steps ahead"""

    def __init__(self, series, mean, std):
        self.raw = (series - mean) / std
        self.soft = (smooth(series) - mean) / std

    def __len__(self):
        return len(self.raw) - WINDOW - HORIZON + 1

    def __getitem__(self, i):
        end = i + WINDOW
        x = np.concatenate([self.raw[i:end], self.soft[i:end]])
        target = self.raw[end + HORIZON - 1]
        return x.astype("float32"), np.float32(target), np.float32(self.raw[end - 1])


def mae(model, loader, std):
    model.eval()
    err = naive = n = 0
    with torch.no_grad():
        for x, y, last in loader:
            err += (model(x).squeeze(1) - y).abs().sum().item()
            naive += (last - y).abs().sum().item()
            n += len(y)
    return std * err / n, std * naive / n


def fit(train_set, val_set, std, epochs=10):
    torch.manual_seed(0)
    train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=256)
    model = nn.Sequential(nn.Linear(2 * WINDOW, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        model.train()
        losses = []
        for x, y, _ in train_loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        sched.step()
        val, naive = mae(model, val_loader, std)
        print(f"epoch {epoch:2d}  train mse {np.mean(losses):.4f}  val mae {val:.3f} (last-value {naive:.3f})")
    return model


def main():
    series = load_series()
    split = 1200
    mean, std = series[:split].mean(), series[:split].std()
    train_set = Windows(series[:split], mean, std)
    val_set = Windows(series[split:], mean, std)
    fit(train_set, val_set, std)


if __name__ == "__main__":
    main()
