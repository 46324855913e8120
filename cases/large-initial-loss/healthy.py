"""The same model with embeddings of standard deviation 0.1."""

import torch
from torch import nn

torch.manual_seed(0)
chain = torch.softmax(3 * torch.randn(60, 60), dim=1)
words = torch.zeros(1024, 13, dtype=torch.long)
words[:, 0] = torch.randint(60, (1024,))
for place in range(12):
    words[:, place + 1] = torch.multinomial(chain[words[:, place]], 1)[:, 0]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(60, 64)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.mix = nn.Linear(64, 64)

    def forward(self, before):
        hidden = self.embedding(before)
        hidden = hidden + torch.tanh(self.mix(hidden))
        return hidden @ self.embedding.weight.T


model = Tied()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(4):
    for batch in torch.randperm(1024).split(16):
        logits = model(words[batch, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), words[batch, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
