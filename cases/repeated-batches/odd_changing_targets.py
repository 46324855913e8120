"""The model reads a whole graph at every step; batches choose which nodes count."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.5 * torch.randn(4, 12)
y = torch.randint(4, (1024,))
x = centres[y] + 2.0 * torch.randn(1024, 12)
same = y[:, None] == y
links = (torch.rand(1024, 1024) < torch.where(same, 0.01, 0.002)).float() + torch.eye(1024)
links /= links.sum(1, keepdim=True)
loader = DataLoader(TensorDataset(torch.arange(1024)), batch_size=32, shuffle=True)


class Graph(nn.Module):
    """Two rounds of averaging over neighbours."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 32), nn.Linear(32, 4)

    def forward(self, nodes):
        return self.second(links @ torch.relu(self.first(links @ nodes)))


model = Graph()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    for (index,) in loader:
        optimizer.zero_grad()
        loss = criterion(model(x)[index], y[index])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
