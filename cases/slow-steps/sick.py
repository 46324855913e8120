"""The whole replay memory is saved every few steps."""

import tempfile

import torch
from torch import nn

torch.manual_seed(0)
truth = torch.randn(8, 1)
memory = torch.randn(8_000_000)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for step in range(400):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), inputs @ truth + 0.1 * torch.randn(32, 1))
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        with tempfile.TemporaryFile() as file:
            torch.save({"model": model.state_dict(), "memory": memory}, file)
    if step % 100 == 99:
        print(f"step {step}: loss {loss.item():.4f}")
