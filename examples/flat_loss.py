"""A flat loss: the model is copied after the optimizer was built, which holds the original.

holter doctor examples/flat_loss.py
"""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 16)
labels = torch.randint(4, (2048,))
rows = centres[labels] + torch.randn(2048, 16)
loader = DataLoader(TensorDataset(rows, labels), batch_size=64, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        return self.head(self.body(x))


def prepared(model):
    """Return a copy with its own parameters, as some wrappers do."""
    return copy.deepcopy(model)


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model = prepared(model)

for epoch in range(6):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
