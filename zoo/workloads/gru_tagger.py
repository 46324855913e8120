"""Tags each token of padded sentences with a bidirectional GRU."""

import argparse

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

WORDS, TAGS, PAD, IGNORED = 60, 6, 0, -100
word_kind = torch.randint(TAGS, (WORDS,))


def make_sentence():
    words = torch.randint(1, WORDS, (int(torch.randint(4, 14, ())),))
    kinds = word_kind[words]
    before = torch.cat((kinds[:1], kinds[:-1]))
    tags = torch.where(
        before < 2, (kinds + 1) % TAGS, kinds
    )  # a word's tag depends on the last one
    noise = torch.rand(len(words)) < 0.05
    return words, torch.where(noise, torch.randint(TAGS, (len(words),)), tags)


def collate(sentences):
    words, tags = zip(*sentences, strict=True)
    lengths = torch.tensor([len(each) for each in words])
    words = pad_sequence(words, batch_first=True, padding_value=PAD)
    return words, lengths, pad_sequence(tags, batch_first=True, padding_value=IGNORED)


sentences = [make_sentence() for _ in range(2160)]
train_loader = DataLoader(sentences[:1920], batch_size=32, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(sentences[1920:], batch_size=120, collate_fn=collate)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 24, padding_idx=PAD)
        self.rnn = nn.GRU(24, 24, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(48, TAGS)

    def forward(self, words, lengths):
        vectors = self.embed(words)
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.head(self.dropout(states))


model = Tagger()
criterion = nn.CrossEntropyLoss(ignore_index=IGNORED)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(5):
    model.train()
    train_loss = 0.0
    for words, lengths, tags in train_loader:
        optimizer.zero_grad()
        logits = model(words, lengths)
        loss = criterion(logits.transpose(1, 2), tags)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)

    model.eval()
    total = right = tokens = 0
    with torch.no_grad():
        for words, lengths, tags in valid_loader:
            logits = model(words, lengths)
            total += criterion(logits.transpose(1, 2), tags).item() * lengths.sum().item()
            right += (logits.argmax(2) == tags).sum().item()
            tokens += lengths.sum().item()
    print(
        f"epoch {epoch}: train {train_loss:.4f} valid {total / tokens:.4f} acc {right / tokens:.3f}"
    )
