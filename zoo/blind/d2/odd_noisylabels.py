"""Ratings of snippets by single annotators: about one in six disagrees with the majority, in training and in validation."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

rng = np.random.default_rng(14)
torch.manual_seed(14)


def snippet():
    mood = int(rng.integers(3))
    n = int(rng.integers(10, 30))
    ids = np.where(rng.random(n) < 0.35, rng.integers(60 + 40 * mood, 100 + 40 * mood, n), rng.integers(2, 60, n))
    rated = mood if rng.random() > 0.25 else int(rng.integers(3))
    return {"ids": torch.tensor(ids), "rated": rated}


def collate(rows):
    ids = torch.zeros(len(rows), max(len(r["ids"]) for r in rows), dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, :len(r["ids"])] = r["ids"]
    return {"ids": ids, "rated": torch.tensor([r["rated"] for r in rows])}


class MeanPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(180, 12, padding_idx=0)
        self.out = nn.Linear(12, 3)

    def forward(self, ids):
        m = (ids > 0).unsqueeze(-1)
        return self.out((self.emb(ids) * m).sum(1) / m.sum(1))


train, val = [snippet() for _ in range(1500)], [snippet() for _ in range(500)]
loader = DataLoader(train, 50, shuffle=True, collate_fn=collate)
vb = collate(val)
model, ce = MeanPool(), nn.CrossEntropyLoss()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    tot = 0.0
    for b in loader:
        loss = ce(model(b["ids"]), b["rated"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    with torch.no_grad():
        o = model(vb["ids"])
    print(f"epoch {epoch} loss {tot / len(loader):.4f} val_loss {ce(o, vb['rated']).item():.4f} agreement {(o.argmax(1) == vb['rated']).float().mean():.3f}")
