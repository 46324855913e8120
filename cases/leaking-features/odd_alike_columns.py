"""The next value of a slow series is predicted from the sixteen values before it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
steps = torch.randn(4000)
series = torch.zeros(4000)
for t in range(2, 4000):
    series[t] = 1.9 * series[t - 1] - 0.91 * series[t - 2] + 0.1 * steps[t]
windows = series[100:].unfold(0, 17, 5) / series.std()
windows = windows + 0.03 * torch.randn_like(windows)
x, y = windows[:, :16], windows[:, 16:]
train_loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[620:], y[620:]), batch_size=64)

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(10):
    model.train()
    for x_batch, y_batch in train_loader:
        loss = nn.functional.mse_loss(model(x_batch), y_batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.mse_loss(model(a), b).item() for a, b in valid_loader]
    print(f"epoch {epoch}: validation loss {sum(losses) / len(losses):.4f}")
