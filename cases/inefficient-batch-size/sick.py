"""A batch of 4096 where gradients of a few dozen samples already agree."""

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

torch.manual_seed(0)
x = torch.randn(16384, 16)
y = torch.tanh(x[:, :4].sum(1, keepdim=True)) + 0.02 * torch.randn(16384, 1)
data = TensorDataset(x, y)
batches = BatchSampler(RandomSampler(data), 4096, drop_last=False)
loader = DataLoader(data, sampler=batches, batch_size=None)  # a batch is one look-up

model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.005)

for epoch in range(20):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
