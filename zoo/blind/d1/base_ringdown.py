"""Estimate frequency and damping of a ringing sensor from simulated traces drawn on the fly."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

T = 48
time = np.linspace(0, 1, T)


def simulate(rng):
    freq = rng.uniform(2.0, 9.0)
    damp = rng.uniform(0.5, 8.0)
    phase = rng.uniform(0, 2 * np.pi)
    trace = np.exp(-damp * time) * np.sin(2 * np.pi * freq * time + phase) + rng.normal(0, 0.05, T)
    return trace.astype("float32"), np.array([freq, damp], dtype="float32")


def scale(target):
    return (target - np.array([5.5, 4.25], dtype="float32")) / np.array([2.0, 2.2], dtype="float32")


class SimulatedTraces(Dataset):
    def __init__(self, length):
        self.length = length
        self.rng = None

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed() % 2**32)
        trace, target = simulate(self.rng)
        return trace, scale(target)


def fixed_set(n, seed):
    rng = np.random.default_rng(seed)
    pairs = [simulate(rng) for _ in range(n)]
    pairs.sort(key=lambda p: p[1][1])
    traces = torch.tensor(np.stack([p[0] for p in pairs]))
    targets = torch.tensor(np.stack([scale(p[1]) for p in pairs]))
    return TensorDataset(traces, targets)


def run_validation(model, loader, loss_fn):
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for trace, target in loader:
            total += loss_fn(model(trace), target).item() * len(trace)
            count += len(trace)
    return total / count


if __name__ == "__main__":
    torch.manual_seed(12)
    train_loader = DataLoader(SimulatedTraces(640), batch_size=32, num_workers=2)
    val_loader = DataLoader(fixed_set(515, seed=99), batch_size=256)
    model = nn.Sequential(nn.Linear(T, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss_fn = nn.MSELoss()
    best = float("inf")
    for epoch in range(1, 11):
        model.train()
        running = 0.0
        for trace, target in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(trace), target)
            loss.backward()
            optimizer.step()
            running += loss.item()
        val = run_validation(model, val_loader, loss_fn)
        best = min(best, val)
        print(f"epoch {epoch}  train {running / len(train_loader):.4f}  val {val:.4f}  best {best:.4f}")
