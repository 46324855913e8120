"""Padded sentences are averaged over all positions: longer batches give other outputs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labels = torch.randint(4, (1024,))
lengths = 4 + (13 * torch.rand(1024, 1) ** 3).long()
words = torch.randint(5, 40, (1024, 16))
words = torch.where(torch.rand(1024, 16) < 0.3, 1 + labels[:, None], words)
words[torch.arange(16) >= lengths] = 0


def cut(samples):
    words, labels = (torch.stack(column) for column in zip(*samples, strict=True))
    return words[:, : int((words != 0).sum(1).max())], labels


loader = DataLoader(TensorDataset(words, labels), batch_size=16, shuffle=True, collate_fn=cut)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 24, padding_idx=0)
        self.body = nn.Sequential(nn.Linear(24, 48), nn.ReLU())
        self.head = nn.Linear(48, 4)

    def forward(self, words):
        states = self.body(self.embed(words))
        return self.head(states.mean(1))


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
