"""The loss is a sum over batches of many sizes, and follows their size."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(20_000, 8)
targets = inputs @ torch.randn(8, 1) + torch.randn(20_000, 1)


class Groups:
    """Groups of 20 to 400 samples: the same sizes in every epoch, in another order."""

    def __init__(self):
        self.sizes = torch.linspace(20, 400, 95).int().tolist()

    def __iter__(self):
        groups = torch.randperm(20_000)[: sum(self.sizes)].split(
            [self.sizes[n] for n in torch.randperm(len(self.sizes))]
        )
        return iter([group.tolist() for group in groups])


loader = DataLoader(TensorDataset(inputs, targets), batch_sampler=Groups())
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    for x, y in loader:
        loss = torch.cosh(model(x) - y).log().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item() / len(x):.4f} a sample")
