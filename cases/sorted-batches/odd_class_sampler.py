"""Every batch holds 32 samples of each of two classes, chosen at random out of sixteen."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(16, 12)
y = torch.arange(16).repeat_interleave(128)
x = centres[y] + torch.randn(2048, 12)


class TwoClasses:
    """Chooses the batches of an epoch."""

    def __len__(self):
        return 32

    def __iter__(self):
        for _ in range(len(self)):
            for label in torch.randperm(16)[:2].tolist():
                yield (128 * label + torch.randperm(128)[:32]).tolist()


class Pairs:
    """Joins two classes into a batch."""

    def __len__(self):
        return 32

    def __iter__(self):
        chosen = iter(TwoClasses())
        for first in chosen:
            yield first + next(chosen)


loader = DataLoader(TensorDataset(x, y), batch_sampler=Pairs())
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 16))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(16):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
