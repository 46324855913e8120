"""The list of parts is joined with itself: every sample is there twice."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)


def read(part):
    """A part of the data, as if from a file."""
    generator = torch.Generator().manual_seed(part)
    y = torch.randint(4, (400,), generator=generator)
    return centres[y] + 1.5 * torch.randn(400, 12, generator=generator), y


parts = [0, 1]
parts += parts
samples = [read(part) for part in parts]
x, y = torch.cat([x for x, _ in samples]), torch.cat([y for _, y in samples])
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
valid_loader = DataLoader(TensorDataset(*read(9)), batch_size=100)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs), targets).item() for inputs, targets in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
