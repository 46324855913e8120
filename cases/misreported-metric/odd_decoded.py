"""The accuracy is that of tokens that the model decodes by itself, one after the other."""

import torch
from torch import nn

torch.manual_seed(0)
TOKENS, LENGTH, HIDDEN = 12, 10, 48
steps = torch.randint(1, 5, (1400, 1)).repeat(1, LENGTH + 1)
steps += (torch.rand(steps.shape) < 0.05).long()  # a token is left out now and then
sequences = steps.cumsum(1) % TOKENS
train_set, val_set = sequences[:1200], sequences[1200:]


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 16)
        self.gru = nn.GRU(16, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, TOKENS)

    def forward(self, tokens, state=None):
        features, state = self.gru(self.embedding(tokens), state)
        return self.head(features), state


def decode(start):
    """Let the model write on after two tokens."""
    logits, state = model(start)
    written = [start[:, :1], start[:, 1:], logits[:, -1:].argmax(-1)]
    while len(written) <= LENGTH:
        logits, state = model(written[-1], state)
        written.append(logits.argmax(-1))
    return torch.cat(written, 1)


model = Writer()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    for batch in train_set[torch.randperm(len(train_set))].split(40):
        logits, _ = model(batch[:, :-1])
        loss = criterion(logits[:, 1:].flatten(0, 1), batch[:, 2:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits, _ = model(val_set[:, :-1])
        val_loss = criterion(logits[:, 1:].flatten(0, 1), val_set[:, 2:].flatten())
        right = (decode(val_set[:, :2]) == val_set)[:, 2:].float().mean()
    print(f"epoch {epoch} | train {loss:.3f} | valid {val_loss:.3f} | token acc {right:.3f}")
