"""Points are read in the order of file names (10 before 2), labels in the order of numbers."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)
labels = np.repeat(np.arange(4), 250)
points = rng.normal(0, 1.5, (4, 10))[labels] + rng.normal(0, 1, (1000, 10))
order = rng.permutation(len(points))
files = {f"point-{i}.npy": points[j] for i, j in enumerate(order)}
points, labels = np.stack([files[name] for name in sorted(files)]), labels[order]

x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(labels)
train_loader = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=100)

model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)

for epoch in range(6):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(a).argmax(1) == b).sum().item() for a, b in valid_loader)
    print(f"epoch {epoch}: {loss.item():.4f}, validation accuracy {right / 200:.3f}")
