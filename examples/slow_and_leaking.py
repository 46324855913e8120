"""A loader that makes every step wait, and a sum that keeps the graph of every step.

holter run examples/slow_and_leaking.py
holter try throughput examples/slow_and_leaking.py
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
labels = torch.randint(4, (2048,))
rows = centres[labels] + 1.5 * torch.randn(len(labels), 12)


class Images(Dataset):
    def __len__(self):
        return len(rows)

    def __getitem__(self, index):
        time.sleep(3e-4)  # as long as it takes to decode a small image
        return rows[index], labels[index]


loader = DataLoader(Images(), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

total = 0
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss
    print(f"epoch {epoch}: loss {loss.item():.4f}")
