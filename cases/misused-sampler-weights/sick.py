"""The sampler is given one weight for each class."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
centres = 1.2 * torch.randn(4, 16)
y = torch.multinomial(torch.tensor([0.6, 0.2, 0.1, 0.1]), 1536, replacement=True)
x = centres[y] + torch.randn(1536, 16)

class_weights = 1 / y[:1024].bincount()
sampler = WeightedRandomSampler(class_weights, 1024)
train_set = TensorDataset(x[:1024], y[:1024])
train_loader = DataLoader(train_set, batch_size=32, sampler=sampler)
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
