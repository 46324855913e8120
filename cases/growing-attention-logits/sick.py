"""Queries and keys are neither normalised nor scaled, and the learning rate is not small."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
WORDS, LENGTH, WIDTH = 24, 16, 64
table = torch.softmax(3 * torch.randn(WORDS, WORDS), dim=1)
text = torch.randint(WORDS, (1024, 1))
for _ in range(LENGTH):
    text = torch.cat([text, torch.multinomial(table[text[:, -1]], 1)], dim=1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 128), nn.GELU(), nn.Linear(128, WIDTH))

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, dim=2)
        read = functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
        x = x + self.out(read)
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(14):
    for index in torch.randperm(len(text)).split(32):
        tokens = text[index]
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
