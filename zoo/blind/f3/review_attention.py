import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

VOCAB = 200


class Reviews(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for i in range(n):
            label = int(torch.randint(0, 2, (1,), generator=g))
            length = int(torch.randint(3, 15, (1,), generator=g))
            if i == 1419:
                length = 0
            low = 1 if label == 0 else 60
            self.items.append((torch.randint(low, low + 130, (length,), generator=g), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def pad(items):
    n = max(len(t) for t, _ in items)
    tokens = torch.zeros(len(items), n, dtype=torch.long)
    for i, (t, _) in enumerate(items):
        tokens[i, : len(t)] = t
    return {"tokens": tokens, "mask": tokens != 0, "label": torch.tensor([l for _, l in items])}


class Pooler(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.query = nn.Parameter(torch.randn(d) * 0.1)
        self.key = nn.Linear(d, d)

    def forward(self, h, mask):
        scores = self.key(h) @ self.query
        w = torch.softmax(scores.masked_fill(~mask, float('-inf')), dim=1)
        return (w.unsqueeze(-1) * h).sum(1)


class Classifier(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=0)
        self.pool = Pooler(d)
        self.head = nn.Linear(d, 2)

    def forward(self, batch):
        return self.head(self.pool(self.emb(batch["tokens"]), batch["mask"]))


def run():
    torch.manual_seed(0)
    train = DataLoader(Reviews(2600, 1), batch_size=16, collate_fn=pad)
    model = Classifier()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    crit = nn.CrossEntropyLoss()
    for epoch in range(2):
        right = seen = 0
        for batch in train:
            logits = model(batch)
            loss = crit(logits, batch["label"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            right += (logits.argmax(1) == batch["label"]).sum().item()
            seen += len(batch["label"])
        print(f"epoch {epoch}: last loss {loss.item():.4f} train acc {right / seen:.3f}")


run()
