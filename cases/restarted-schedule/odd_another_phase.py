"""Training continues on other data, with a new optimizer and a schedule of its own."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1024, 16)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(1024, 1)

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss()

for phase, rows in enumerate(torch.arange(len(x)).chunk(2)):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(1 - step / 120, 0.01))
    for _ in range(15):
        for index in rows[torch.randperm(len(rows))].split(64):
            optimizer.zero_grad()
            loss = criterion(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
            scheduler.step()
    print(f"phase {phase}: loss {loss.item():.4f}")
