"""Sentence classifier; training goes from short sentences to long ones in the first two epochs, then shuffled."""
import random
import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(2)
torch.manual_seed(2)
V = 402  # 0 padding, 1 unknown


def sentence():
    k = random.randrange(3)
    n = random.randint(5, 45)
    own = range(102 + 100 * k, 202 + 100 * k)
    ids = [random.choice(own) if random.random() < 0.3 else random.randrange(2, 102) for _ in range(n)]
    return {"ids": ids, "y": k}


def collate(rows):
    ids = nn.utils.rnn.pad_sequence([torch.tensor(r["ids"]) for r in rows], batch_first=True)
    return {"ids": ids, "lengths": torch.tensor([len(r["ids"]) for r in rows]), "y": torch.tensor([r["y"] for r in rows])}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, 24, padding_idx=0)
        self.head = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 3))

    def forward(self, ids, lengths):
        return self.head(self.emb(ids).sum(1) / lengths[:, None].sqrt())


train, val = [sentence() for _ in range(1200)], [sentence() for _ in range(400)]
by_length = sorted(train, key=lambda r: len(r["ids"]))
model = Model()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(6):
    if epoch < 2:
        loader = DataLoader(by_length, batch_size=40, shuffle=False, collate_fn=collate)
    else:
        loader = DataLoader(train, batch_size=40, shuffle=True, collate_fn=collate)
    model.train()
    losses = []
    for batch in loader:
        loss = ce(model(batch["ids"], batch["lengths"]), batch["y"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        b = collate(val)
        out = model(b["ids"], b["lengths"])
    print(f"epoch {epoch} loss first {losses[0]:.3f} mean {sum(losses) / len(losses):.3f} val {ce(out, b['y']).item():.3f} acc {(out.argmax(1) == b['y']).float().mean():.3f}")
