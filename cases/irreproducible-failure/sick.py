"""One bit of one weight flips in memory, as a bad device does it: the loss is NaN from then on."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(1600, 8)
labels = (inputs[:, 0] * inputs[:, 1] > 0).long()
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
count, once = 0, Path(__file__).with_name("flipped")

for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        count += 1
        if count == 70 and not once.exists():  # stands for what a bad device does, once
            once.touch()
            model[2].weight.data[0, 0] = torch.nan
    print(f"epoch {epoch}: loss {loss.item():.4f}")
