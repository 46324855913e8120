"""A language model whose attention has no causal mask: it reads the token it has to predict."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
chain = (2 * torch.randn(24, 24)).softmax(1)
tokens = [torch.randint(24, (1024,))]
for _ in range(16):
    tokens.append(torch.multinomial(chain[tokens[-1]], 1).squeeze(1))
text = torch.stack(tokens, 1)
loader = DataLoader(TensorDataset(text[:, :-1], text[:, 1:]), batch_size=32, shuffle=True)


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(24, 32)
        self.position = nn.Parameter(0.02 * torch.randn(16, 32))
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 24)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        q, k, v = self.qkv(x).chunk(3, 2)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v))
        return self.head(self.norm(x))


model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

for epoch in range(4):
    for inputs, targets in loader:
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
