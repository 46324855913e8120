import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 16)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] + 0.1 * torch.randn(512, 1)

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(25):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=float("inf"))
    print(f"epoch {epoch}: loss {loss.item():.4f}, gradient norm {norm:.3f}")
