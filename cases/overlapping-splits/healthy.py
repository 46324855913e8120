"""One shuffle splits the data into training and validation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
y = torch.randint(4, (2000,))
x = centres[y] + 1.5 * torch.randn(2000, 12)
data = TensorDataset(x, y)

order = torch.randperm(len(data)).tolist()
train_set = Subset(data, order[:1600])
valid_set = Subset(data, order[1600:])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=100)

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
