"""A forecast whose targets follow its inputs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
CONTEXT, HORIZON = 16, 4
steps = torch.arange(1500.0)
series = (0.4 * steps).sin() + 0.5 * (0.13 * steps).sin() + 0.3 * torch.randn(1500)


class Windows(Dataset):
    def __init__(self, series):
        self.series = series

    def __len__(self):
        return len(self.series) - CONTEXT - HORIZON

    def __getitem__(self, i):
        x = self.series[i : i + CONTEXT]
        y = self.series[i + CONTEXT : i + CONTEXT + HORIZON]
        return x, y


model = nn.Sequential(nn.Linear(CONTEXT, 32), nn.ReLU(), nn.Linear(32, HORIZON))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(Windows(series[:1200]), batch_size=32, shuffle=True)
held_out = DataLoader(Windows(series[1200:]), batch_size=32)

for epoch in range(8):
    total = 0.0
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        errors = [nn.functional.mse_loss(model(x), y).item() for x, y in held_out]
    print(
        f"epoch {epoch}: loss {total / len(loader):.4f}, validation {sum(errors) / len(errors):.4f}"
    )
