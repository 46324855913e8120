"""Tags are padded with 0, which is a tag; the loss ignores another value."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
sentences = []
for _ in range(800):
    words = torch.randint(1, 40, (int(torch.randint(6, 15, ())),))
    sentences.append((words, (words + words.roll(1)) % 4))


def collate(batch):
    words = pad_sequence([words for words, _ in batch], batch_first=True)
    tags = pad_sequence([tags for _, tags in batch], batch_first=True)
    return words, tags


loader = DataLoader(sentences, batch_size=20, shuffle=True, collate_fn=collate)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 24, padding_idx=0)
        self.body = nn.GRU(24, 48, batch_first=True)
        self.head = nn.Linear(48, 4)

    def forward(self, words):
        return self.head(self.body(self.embed(words))[0])


model = Tagger()
criterion = nn.CrossEntropyLoss(ignore_index=-100)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    total = 0.0
    for words, tags in loader:
        loss = criterion(model(words).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
