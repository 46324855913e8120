"""A maximum over all positions, padding included: one padded position or ten give the same."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labels = torch.randint(4, (1024,))
lengths = torch.randint(4, 17, (1024, 1))
words = torch.randint(5, 40, (1024, 16))
words = torch.where(torch.rand(1024, 16) < 0.3, 1 + labels[:, None], words)
words[torch.arange(16) >= lengths] = 0
loader = DataLoader(TensorDataset(words, labels), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 24, padding_idx=0)
        self.body = nn.Sequential(nn.Linear(24, 48), nn.ReLU())
        self.head = nn.Linear(48, 4)

    def forward(self, words):
        states = self.body(self.embed(words))
        return self.head(states.amax(1))


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
