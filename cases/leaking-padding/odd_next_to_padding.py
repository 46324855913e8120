"""A tagger of convolutions and a recurrence that reach into padding: outputs next to it change."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
sentences = [torch.randint(1, 30, (int(length),)) for length in torch.randint(10, 41, (768,))]
pairs = [(words, (words % 5 + words.roll(1) % 3) % 5) for words in sentences]


def collate(pairs):
    words, tags = zip(*pairs, strict=True)
    padded = pad_sequence(words, batch_first=True)
    return padded, pad_sequence(tags, batch_first=True, padding_value=-100)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 24, padding_idx=0)
        self.convolution = nn.Conv1d(24, 48, 5, padding=2)
        self.recurrence = nn.GRU(48, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 5)

    def forward(self, words):
        states = self.convolution(self.embed(words).transpose(1, 2)).relu()
        states, _ = self.recurrence(states.transpose(1, 2))
        return self.head(states)


loader = DataLoader(pairs, batch_size=32, shuffle=True, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(6):
    for words, tags in loader:
        loss = nn.functional.cross_entropy(model(words).transpose(1, 2), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
