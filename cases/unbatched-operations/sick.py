"""The forward pass goes through the batch in a Python loop, one sample at a time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
labels = torch.randint(4, (1280,))
rows = centres[labels] + 1.5 * torch.randn(len(labels), 12)
loader = DataLoader(TensorDataset(rows, labels), batch_size=64, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 48)
        self.head = nn.Linear(48, 4)

    def forward(self, x):
        return torch.stack([self.head(torch.tanh(self.body(row))) for row in x])


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
