import random
from collections import Counter

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence, pad_packed_sequence

random.seed(11)
torch.manual_seed(11)

PAD, UNK = 0, 1
TAGS = ["O", "PER", "LOC", "ORG"]
AMBIGUOUS = [f"name{i}" for i in range(25)]            # the word alone does not tell the tag
PLAIN = [f"w{i}" for i in range(60)]
BEFORE = {"PER": ["mr", "mrs", "dr"], "LOC": ["in", "near", "from"]}
AFTER = {"ORG": ["inc", "ltd", "corp"]}


def sentence():
    words, tags = [], []
    for _ in range(random.randint(2, 10)):
        if random.random() < 0.9:
            words.append(random.choice(PLAIN)), tags.append("O")
            continue
        tag = random.choice(["PER", "LOC", "ORG"])
        if tag in BEFORE:
            words.append(random.choice(BEFORE[tag])), tags.append("O")
        words.append(random.choice(AMBIGUOUS)), tags.append(tag)
        if tag in AFTER:
            words.append(random.choice(AFTER[tag])), tags.append("O")
    return words, tags


train, test = [sentence() for _ in range(800)], [sentence() for _ in range(250)]
vocab = {w: i + 2 for i, (w, _) in enumerate(Counter(w for ws, _ in train for w in ws).most_common())}
tag_id = {t: i for i, t in enumerate(TAGS)}


def encode(sentences):
    return [(torch.tensor([vocab.get(w, UNK) for w in ws]), torch.tensor([tag_id[t] for t in ts])) for ws, ts in sentences]


def collate(batch):
    batch = sorted(batch, key=lambda pair: len(pair[0]), reverse=True)
    words = [w for w, _ in batch]
    tags = [t for _, t in batch]
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, True, PAD), pad_sequence(tags, True, -100), lengths


class Tagger(nn.Module):
    def __init__(self, n_words, n_tags, dim=24, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(n_words, dim, padding_idx=PAD)
        self.lstm = nn.LSTM(dim, hidden, bidirectional=True, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(2 * hidden, n_tags)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(self.drop(hidden))


def entity_scores(model, loader):
    model.eval()
    tp = predicted = actual = 0
    with torch.no_grad():
        for words, tags, lengths in loader:
            guess = model(words, lengths).argmax(-1)
            keep = tags != -100
            g, t = guess[keep], tags[keep]
            tp += ((g == t) & (t > 0)).sum().item()
            predicted += (g > 0).sum().item()
            actual += (t > 0).sum().item()
    precision, recall = tp / max(predicted, 1), tp / max(actual, 1)
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


train_loader = torch.utils.data.DataLoader(encode(train), batch_size=30, shuffle=True, collate_fn=collate)
test_loader = torch.utils.data.DataLoader(encode(test), batch_size=125, collate_fn=collate)
counts = torch.bincount(torch.cat([t for _, t in train_loader.dataset]), minlength=len(TAGS)).float()
weights = counts.sum() / (len(TAGS) * counts)
model = Tagger(len(vocab) + 2, len(TAGS))
criterion = nn.CrossEntropyLoss(weight=weights, ignore_index=-100)
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)

for epoch in range(1, 6):
    model.train()
    total = 0.0
    for words, tags, lengths in train_loader:
        optimizer.zero_grad()
        scores = model(words, lengths)
        loss = criterion(scores.reshape(-1, len(TAGS)), tags.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    p, r, f1 = entity_scores(model, test_loader)
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} | entities P {p:.3f} R {r:.3f} F1 {f1:.3f}")
