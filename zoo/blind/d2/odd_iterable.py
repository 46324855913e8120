import itertools
import random
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Reviews(IterableDataset):
    """Endless stream of token ids; nothing is ever repeated."""

    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        r = random.Random(self.seed)
        while True:
            label = int(r.random() < 0.5)
            ids = []
            for _ in range(r.randint(6, 25)):
                if r.random() < 0.25:
                    ids.append(r.randrange(100, 180) if label else r.randrange(180, 260))
                else:
                    ids.append(r.randrange(1, 100))
            yield {"ids": ids, "label": label}


def collate(rows):
    flat = torch.tensor(list(itertools.chain.from_iterable(r["ids"] for r in rows)))
    offsets = torch.tensor([0] + [len(r["ids"]) for r in rows[:-1]]).cumsum(0)
    return {"flat": flat, "offsets": offsets, "label": torch.tensor([float(r["label"]) for r in rows])}


torch.manual_seed(0)
bag, head = nn.EmbeddingBag(260, 16, mode="mean"), nn.Linear(16, 1)
opt = torch.optim.Adam(itertools.chain(bag.parameters(), head.parameters()), lr=1e-2)
bce = nn.BCEWithLogitsLoss()
held_out = list(itertools.islice(DataLoader(Reviews(999), batch_size=100, collate_fn=collate), 4))
window = []
for step, batch in enumerate(itertools.islice(DataLoader(Reviews(1), batch_size=32, collate_fn=collate), 250), 1):
    loss = bce(head(bag(batch["flat"], batch["offsets"])).squeeze(1), batch["label"])
    opt.zero_grad()
    loss.backward()
    opt.step()
    window.append(loss.item())
    if step % 50 == 0:
        with torch.no_grad():
            outs = [(head(bag(b["flat"], b["offsets"])).squeeze(1), b["label"]) for b in held_out]
        o, y = torch.cat([a for a, _ in outs]), torch.cat([b for _, b in outs])
        print(f"step {step} loss {sum(window) / len(window):.4f} held-out {bce(o, y).item():.4f} acc {((o > 0) == (y > 0)).float().mean():.3f}")
        window = []
