"""The weights are drawn again and trained with the same schedule, as for a second seed."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(512, 1)

layers = nn.Linear(16, 64), nn.Linear(64, 1)
model = nn.Sequential(layers[0], nn.Tanh(), layers[1])
criterion = nn.MSELoss()

for seed in (1, 2):
    torch.manual_seed(seed)
    for layer in layers:
        layer.reset_parameters()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(1 - step / 240, 0.01))
    for _ in range(30):
        for index in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = criterion(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
            scheduler.step()
    print(f"seed {seed}: loss {loss.item():.4f}")
