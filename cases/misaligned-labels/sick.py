"""A token is put before each sentence, but no tag before its tags: all tags are one too early."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
WORDS, TAGS, LENGTH = 40, 5, 12
START, NONE = WORDS, -100
tag_of = torch.randint(TAGS, (WORDS,))


def sentences(count):
    """Words with their tags, one of them wrong in ten, behind a token for the start."""
    words = torch.randint(WORDS, (count, LENGTH))
    tags = tag_of[words]
    tags = torch.where(torch.rand(count, LENGTH) < 0.1, torch.randint(TAGS, tags.shape), tags)
    start, none = torch.full((count, 1), START), torch.full((count, 1), NONE)
    return TensorDataset(torch.cat([start, words], 1), torch.cat([tags, none], 1))


class Tagger(nn.Module):
    """Reads a sentence from left to right."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 1, 16)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, TAGS)

    def forward(self, tokens):
        """Return the scores of the tags at each position."""
        return self.head(self.gru(self.embedding(tokens))[0])


train_loader = DataLoader(sentences(800), batch_size=32, shuffle=True)
valid_loader = DataLoader(sentences(200), batch_size=100)

model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def loss_of(tokens, tags):
    """Return the cross-entropy of the tags."""
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tags.flatten())


for epoch in range(5):
    model.train()
    for tokens, tags in train_loader:
        optimizer.zero_grad()
        loss = loss_of(tokens, tags)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [loss_of(tokens, tags).item() for tokens, tags in valid_loader]
    print(f"epoch {epoch}: {loss.item():.4f}, validation {sum(losses) / len(losses):.4f}")
