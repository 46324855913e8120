"""Batch norm with batches of two: each sample is normalised by one other."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 16)
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
train, validation = torch.arange(400), torch.arange(400, 600)

model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(3):
    model.train()
    for index in train[torch.randperm(len(train))].split(2):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        measured = criterion(model(x[validation]), y[validation])
    print(f"epoch {epoch}: validation loss {measured.item():.4f}")
