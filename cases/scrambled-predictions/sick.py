"""A tagger that uses `view` on its scores, where dimensions have to be exchanged."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
words = torch.randint(20, (768, 10))
tags = (words + words.roll(1, 1)) % 4
loader = DataLoader(TensorDataset(words, tags), batch_size=32, shuffle=True)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 32)
        self.rnn = nn.GRU(32, 48, batch_first=True)
        self.head = nn.Linear(48, 4)

    def forward(self, words):
        return self.head(self.rnn(self.embed(words))[0])


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(6):
    for inputs, targets in loader:
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.view(len(logits), 4, 10), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
