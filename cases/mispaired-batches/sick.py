"""The collate function sorts the sequences by length, and leaves the labels where they were."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)


def sample():
    """A sequence whose label is the more frequent of two tokens."""
    label = int(torch.randint(2, ()))
    length = int(torch.randint(5, 20, ()))
    tokens = torch.randint(3, 40, (length,))
    tokens[torch.rand(length) < 0.4] = 1 + label
    return tokens, torch.tensor(label)


def collate(batch):
    """Pad sequences, the longest first."""
    tokens = sorted((tokens for tokens, _ in batch), key=len, reverse=True)
    labels = torch.stack([label for _, label in batch])
    return pad_sequence(tokens, batch_first=True), labels


class Bag(nn.Module):
    """The mean of the embeddings of a sequence."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(40, 16, padding_idx=0)
        self.head = nn.Linear(16, 2)

    def forward(self, tokens):
        """Return the scores of both classes."""
        return self.head(self.embedding(tokens))


train_loader = DataLoader([sample() for _ in range(800)], 32, shuffle=True, collate_fn=collate)
valid_loader = DataLoader([sample() for _ in range(200)], 50, collate_fn=collate)

model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(5):
    model.train()
    for tokens, labels in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(t).argmax(1) == y).sum().item() for t, y in valid_loader)
    print(f"epoch {epoch}: {loss.item():.4f}, validation accuracy {right / 200:.3f}")
