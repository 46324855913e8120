"""All samples of a truth table of four bits, many times."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
bits = torch.randint(2, (1536, 16)).float()
bits[:, 4:] = 0
x, y = 2 * bits - 1, (bits[:, 0] + 2 * bits[:, 1]).long()
train_loader = DataLoader(TensorDataset(x[:1024], y[:1024]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[1024:], y[1024:]), batch_size=256)

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    model.train()
    for inputs, labels in train_loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.cross_entropy(model(a), b).item() for a, b in valid_loader]
    print(f"epoch {epoch}: validation loss {sum(losses) / len(losses):.4f}")
