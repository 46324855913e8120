"""A leak of the future: the mask of a small language model is off by one, so it copies.

holter try preflight examples/too_good.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCABULARY, CONTEXT, WIDTH = 32, 24, 48

torch.manual_seed(0)
chain = (1.5 * torch.randn(VOCABULARY, VOCABULARY)).softmax(1)
tokens = [torch.randint(VOCABULARY, (2048,))]
for _ in range(CONTEXT):
    tokens.append(torch.multinomial(chain[tokens[-1]], 1).squeeze(1))
text = torch.stack(tokens, 1)
loader = DataLoader(TensorDataset(text[:, :-1], text[:, 1:]), batch_size=32, shuffle=True)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 96), nn.GELU(), nn.Linear(96, WIDTH))

    def forward(self, x):
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(diagonal=2)
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=hidden, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens) + self.position))


model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

for epoch in range(6):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")  # entropy of the chain: about 2.5
