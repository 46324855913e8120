"""A student is distilled with `kl_div` on probabilities instead of their logarithms."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
inputs = torch.randn(3_000, 20)
teacher = nn.Linear(20, 5).requires_grad_(False)
student = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)

for epoch in range(8):
    for x in inputs.split(100):
        loss = functional.kl_div(
            student(x).softmax(1), teacher(3 * x).softmax(1), reduction="batchmean"
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
