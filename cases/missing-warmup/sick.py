"""A deep transformer with the norm after each block, at its full learning rate from step 1."""

import torch
from torch import nn

torch.manual_seed(0)
vocabulary, length, width = 16, 8, 32
chain = torch.distributions.Dirichlet(torch.full((vocabulary,), 0.15)).sample((vocabulary,))


def batch():
    tokens = [torch.randint(vocabulary, (16,))]
    for _ in range(length):
        tokens.append(torch.multinomial(chain[tokens[-1]], 1)[:, 0])
    sequence = torch.stack(tokens, 1)
    return sequence[:, :-1], sequence[:, 1:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 16)
        for weight in self.encoder.parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.encoder(self.embedding(tokens), mask=mask, is_causal=True))


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for step in range(140):
    inputs, targets = batch()
    optimizer.zero_grad()
    loss = criterion(model(inputs).flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
