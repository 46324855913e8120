"""A softmax in the model before cross-entropy, which applies one of its own."""

import torch
from torch import nn

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
y = torch.randint(4, (2048,))
x = centres[y] + 1.5 * torch.randn(2048, 12)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4), nn.Softmax(dim=1))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
