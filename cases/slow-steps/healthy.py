"""The weights are saved now and then."""

import tempfile

import torch
from torch import nn

torch.manual_seed(0)
truth = torch.randn(8, 1)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for step in range(400):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), inputs @ truth + 0.1 * torch.randn(32, 1))
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        with tempfile.TemporaryFile() as file:
            torch.save(model.state_dict(), file)
    if step % 100 == 99:
        print(f"step {step}: loss {loss.item():.4f}")
