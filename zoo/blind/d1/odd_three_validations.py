import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def scans(n, seed, offset=0.0, noise=0.5):
    g = np.random.default_rng(seed)
    y = g.integers(0, 2, n)
    t = np.linspace(0, 1, 32)
    f = np.where(y == 1, 3.0, 5.0)[:, None]
    x = np.sin(2 * np.pi * f * t + g.uniform(0, 6.28, (n, 1))) + offset * t + noise * g.normal(size=(n, 32))
    return TensorDataset(torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y))


torch.manual_seed(6)
train = DataLoader(scans(1200, 1), batch_size=40, shuffle=True)
validations = {
    "same scanner": DataLoader(scans(300, 2), batch_size=100),
    "other scanner": DataLoader(scans(200, 3, offset=1.5), batch_size=100),
    "low dose": DataLoader(scans(200, 4, noise=1.6), batch_size=100),
}
model = nn.Sequential(nn.Conv1d(1, 12, 7, padding=3), nn.ReLU(), nn.Conv1d(12, 12, 7, padding=3), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(12, 2))
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
lossf = nn.CrossEntropyLoss()


def accuracy(loader):
    model.eval()
    ok = n = 0
    with torch.no_grad():
        for x, y in loader:
            ok += (model(x).argmax(1) == y).sum().item()
            n += len(y)
    return ok / n


for epoch in range(6):
    model.train()
    s = 0.0
    for x, y in train:
        loss = lossf(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item()
    print(f"epoch {epoch} loss {s / len(train):.3f} | " + " | ".join(f"{k}: {accuracy(v):.3f}" for k, v in validations.items()))
