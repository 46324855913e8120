"""Two sensors on different scales go through one batch norm: its running statistics fit neither."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labels = torch.randint(4, (1024,))
centres = torch.randn(2, 4, 8)
near = centres[0, labels] + torch.randn(1024, 8)
far = 10 * (centres[1, labels] + torch.randn(1024, 8)) + 40
loader = DataLoader(TensorDataset(near, far, labels), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.head = nn.Linear(64, 4)

    def forward(self, near, far):
        near, far = self.norm(near), self.norm(far)
        return self.head(torch.cat((self.body(near), self.body(far)), 1))


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(4):
    model.train()
    for one, other, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(one, other), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
