import random
from collections import Counter

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(5)
torch.manual_seed(5)

TOPICS = ["sport", "money", "cooking", "travel"]
PAD, UNK = "<pad>", "<unk>"
FILLER = [f"w{i}" for i in range(60)]
WORDS = {t: [f"{t}_{i}" for i in range(150)] for t in TOPICS}


def make_text(topic):
    n = random.randint(8, 40)
    out = []
    for _ in range(n):
        r = random.random()
        if r < 0.72:
            out.append(FILLER[min(int(random.expovariate(0.06)), 59)])
        elif r < 0.90:
            out.append(random.choice(WORDS[topic]))
        else:
            out.append(random.choice(WORDS[random.choice(TOPICS)]))
    return out


def make_split(n):
    rows = []
    for _ in range(n):
        k = random.randrange(4)
        rows.append({"tokens": make_text(TOPICS[k]), "label": k})
    return rows


class Vocab:
    def __init__(self, rows, max_size):
        counts = Counter(tok for r in rows for tok in r["tokens"])
        self.itos = [PAD, UNK] + [w for w, _ in counts.most_common(max_size)]
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __call__(self, tokens):
        return [self.stoi.get(t, 1) for t in tokens]

    def __len__(self):
        return len(self.itos)


train_rows, val_rows = make_split(1600), make_split(500)
vocab = Vocab(train_rows, max_size=1000)
train_data = [{"ids": vocab(r["tokens"]), "label": r["label"]} for r in train_rows]
val_data = [{"ids": vocab(r["tokens"]), "label": r["label"]} for r in val_rows]


def collate(batch):
    batch = sorted(batch, key=lambda r: len(r["ids"]), reverse=True)
    seqs = [r["ids"] for r in batch]
    width = max(len(s) for s in seqs)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    for row, s in enumerate(seqs):
        ids[row, :len(s)] = torch.tensor(s)
    labels = torch.tensor([r["label"] for r in batch])
    return {"input_ids": ids, "mask": (ids != 0).float(), "labels": labels}


class Classifier(nn.Module):
    def __init__(self, n_words, dim=32):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim, padding_idx=0)
        self.drop = nn.Dropout(0.2)
        self.fc1 = nn.Linear(dim, 32)
        self.fc2 = nn.Linear(32, len(TOPICS))

    def forward(self, batch):
        m = batch["mask"].unsqueeze(-1)
        e = (self.emb(batch["input_ids"]) * m).sum(1) / m.sum(1).clamp(min=1)
        return self.fc2(torch.relu(self.fc1(self.drop(e))))


train_dl = DataLoader(train_data, batch_size=32, shuffle=True, collate_fn=collate)
val_dl = DataLoader(val_data, batch_size=100, collate_fn=collate)
model = Classifier(max(len(vocab), 1002))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()

step = 0
for epoch in range(5):
    model.train()
    for batch in train_dl:
        loss = criterion(model(batch), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    correct, vloss = 0, 0.0
    with torch.no_grad():
        for batch in val_dl:
            logits = model(batch)
            vloss += criterion(logits, batch["labels"]).item() * len(logits)
            correct += (logits.argmax(-1) == batch["labels"]).sum().item()
    print(f"== epoch {epoch} val_loss {vloss / len(val_data):.4f} val_acc {correct / len(val_data):.3f}")
