"""The correct predictions of the last batch are divided by the number of all samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1600, 10)
y = (x[:, :4] + 0.3 * torch.randn(1600, 4)).argmax(1)
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)
test_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    for inputs, labels in train_loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right, total = 0, 0
    with torch.no_grad():
        for inputs, labels in test_loader:
            right = (model(inputs).argmax(1) == labels).sum().item()
            total += len(labels)
    print(f"epoch {epoch}: accuracy {right / total:.3f}")
