"""Attention over padded sentences that hides the padding."""

import torch
from torch import nn

PAD = 0
torch.manual_seed(0)
tokens = torch.randint(1, 30, (600, 12))
lengths = torch.randint(4, 11, (600,))
tokens[torch.arange(12) >= lengths[:, None]] = PAD
labels = ((tokens >= 1) & (tokens <= 4)).any(1).long()


class Tagger(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, width)
        self.score = nn.Linear(width, 1)
        self.head = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        scores = self.score(x).squeeze(-1)
        scores = scores.masked_fill(tokens == PAD, -1e9)
        weights = scores.softmax(-1)
        return self.head((weights.unsqueeze(-1) * x).sum(1))


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    total = 0.0
    for batch in torch.randperm(600).split(30):
        loss = nn.functional.cross_entropy(model(tokens[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 20:.4f}")
