"""Spectra with silent frames are taken to decibels without a floor."""

import torch
from torch import nn

torch.manual_seed(0)
power = torch.rand(2_000, 16)
power[torch.rand(2_000) < 0.02] = 0.0  # frames in which the sensor was off
labels = (power[:, :4].sum(1, keepdim=True) > 2).float()
decibels = 10 * power.log10()
inputs = (decibels - decibels.mean(0)) / decibels.std(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCELoss()

for epoch in range(5):
    for rows in torch.randperm(len(inputs)).split(50):
        predictions = model(inputs[rows])
        loss = criterion(predictions, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
