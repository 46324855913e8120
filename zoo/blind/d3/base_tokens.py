# Sequence tagging with a left-to-right GRU (streaming tagger).
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
rng = np.random.default_rng(0)

N_WORDS, N_TAGS = 120, 6
PAD, BOS = 0, 1
word_kind = rng.integers(0, 4, N_WORDS)
table = np.array([[0, 0, 1, 2], [0, 3, 1, 0], [4, 0, 5, 3], [2, 5, 0, 4]])
freq = 1.0 / np.arange(3, N_WORDS + 3)
freq /= freq.sum()


def sentence():
    length = int(4 + rng.exponential(9.0))
    length = min(length, 45)
    words = rng.choice(N_WORDS, size=length, p=freq)
    kinds = word_kind[words]
    tags, prev = [], 0
    for k in kinds:
        t = table[prev, k]
        if rng.random() < 0.12:
            t = rng.integers(0, N_TAGS)
        tags.append(int(t))
        prev = k
    return (words + 2).tolist(), tags


train = [sentence() for _ in range(1400)]
valid = [sentence() for _ in range(300)]


def collate(batch):
    order = sorted(range(len(batch)), key=lambda k: -len(batch[k][0]))
    words = [torch.tensor([BOS] + batch[k][0]) for k in order]
    tags = [torch.tensor([-100] + batch[k][1]) for k in order]
    lengths = torch.tensor([len(w) for w in words])
    words = pad_sequence(words, batch_first=True, padding_value=PAD)
    tags = pad_sequence(tags, batch_first=True, padding_value=-100)
    return words, lengths, tags


class Tagger(nn.Module):
    def __init__(self, dim=32, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(N_WORDS + 2, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.head = nn.Linear(hidden, N_TAGS)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.emb(words), lengths, batch_first=True)
        h, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.head(h)


def run(model, loader, criterion, opt=None):
    model.train(opt is not None)
    loss_sum = hits = count = 0
    with torch.set_grad_enabled(opt is not None):
        for words, lengths, tags in loader:
            logits = model(words, lengths)
            loss = criterion(logits.reshape(-1, N_TAGS), tags.reshape(-1))
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
            real = tags >= 0
            n = int(real.sum())
            loss_sum += loss.item() * n
            hits += int((logits.argmax(-1) == tags)[real].sum())
            count += n
    return loss_sum / count, hits / count


train_loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(valid, batch_size=50, collate_fn=collate)
model = Tagger()
criterion = nn.CrossEntropyLoss(ignore_index=-100)
opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
for epoch in range(5):
    tl, ta = run(model, train_loader, criterion, opt)
    vl, va = run(model, valid_loader, criterion)
    print(f"[{epoch}] train loss {tl:.3f} tag acc {ta:.3f} || valid loss {vl:.3f} tag acc {va:.3f}")
print("final valid tag accuracy %.4f loss %.4f" % (va, vl))
