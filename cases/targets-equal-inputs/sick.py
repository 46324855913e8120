"""The targets of a language model are not shifted: it learns to copy."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
WORDS, LENGTH = 24, 16
table = torch.softmax(3 * torch.randn(WORDS, WORDS), dim=1)
text = torch.randint(WORDS, (512, 1))
for _ in range(LENGTH):
    text = torch.cat([text, torch.multinomial(table[text[:, -1]], 1)], dim=1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32)
        self.rnn = nn.GRU(32, 64, batch_first=True)
        self.head = nn.Linear(64, WORDS)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(8):
    for index in torch.randperm(len(text)).split(32):
        tokens = text[index]
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, :-1].flatten())
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
