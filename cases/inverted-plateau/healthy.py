"""The scheduler cuts the rate once the validation loss no longer falls."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(2_500, 16)
targets = torch.sin(inputs[:, :4]).sum(1, keepdim=True)
loader = DataLoader(TensorDataset(inputs[:2_000], targets[:2_000]), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", patience=1)

for epoch in range(30):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(inputs[2_000:]), targets[2_000:])
    scheduler.step(val_loss)
    print(f"epoch {epoch}: validation loss {val_loss:.4f}, rate {scheduler.get_last_lr()[0]:.1e}")
