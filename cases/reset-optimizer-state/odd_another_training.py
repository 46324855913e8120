"""Cross-validation: for each fold the weights are drawn again and the optimizer is created."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 8)
y = torch.sin(2 * x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(1024, 1)
folds = torch.randperm(len(x)).chunk(6)

layers = nn.Linear(8, 64), nn.Linear(64, 1)
model = nn.Sequential(layers[0], nn.Tanh(), layers[1])
criterion = nn.MSELoss()

for fold, held_out in enumerate(folds):
    for layer in layers:
        layer.reset_parameters()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rest = torch.cat([part for part in folds if part is not held_out])
    for _ in range(4):
        for index in rest[torch.randperm(len(rest))].split(64):
            optimizer.zero_grad()
            loss = criterion(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        error = criterion(model(x[held_out]), y[held_out])
    print(f"fold {fold}: loss {loss.item():.4f}, held out {error.item():.4f}")
