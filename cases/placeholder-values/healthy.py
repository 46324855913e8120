"""Missing sizes are replaced by the median of the others."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table = 300 + 60 * torch.randn(1600, 6)
y = (table[:, 0] - 300) / 60 + 0.3 * (table[:, 1] - 300) / 60 + 0.2 * torch.randn(1600)
missing = torch.rand(1600) < 0.08
table[missing, 0] = 999999.0  # not known
table[missing, 0] = table[~missing, 0].median()
mean, std = table[:1200].mean(0), table[:1200].std(0)
x = (table - mean) / std
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200, None]), batch_size=40, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1200:], y[1200:, None]), batch_size=400)

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
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
