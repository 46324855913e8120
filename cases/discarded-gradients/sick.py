"""The step is indented one level too little: one update an epoch, with the last batch alone."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labels = torch.randint(4, (2048,))
centres = 2 * torch.randn(4, 16)
inputs = centres[labels] + torch.randn(2048, 16)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
    optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
