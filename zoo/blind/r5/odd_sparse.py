from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    items: int = 400
    dim: int = 16
    sessions: int = 3000
    length: int = 6
    batch: int = 100
    epochs: int = 9
    lr_table: float = 0.02
    lr_net: float = 0.003


class SessionLength(nn.Module):
    """total dwell time of a session from the bag of items; item table has sparse gradients"""

    def __init__(self, s):
        super().__init__()
        self.table = nn.Embedding(s.items, s.dim, sparse=True)
        self.net = nn.Sequential(nn.Linear(s.dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids):
        return self.net(self.table(ids).mean(1)).squeeze(1)


def make(s, n, worth, g):
    ids = torch.randint(0, s.items, (n, s.length), generator=g)
    y = worth[ids].mean(1) * s.length ** 0.5 + 0.1 * torch.randn(n, generator=g)
    return ids, y


def main(s=Settings()):
    torch.manual_seed(15)
    g = torch.Generator().manual_seed(15)
    worth = torch.randn(s.items, generator=g)
    ids, y = make(s, s.sessions, worth, g)
    vids, vy = make(s, 800, worth, g)
    model = SessionLength(s)
    opts = [torch.optim.SparseAdam(list(model.table.parameters()), lr=s.lr_table),
            torch.optim.Adam(model.net.parameters(), lr=s.lr_net)]
    for e in range(s.epochs):
        total = 0.0
        for idx in torch.randperm(s.sessions).split(s.batch):
            loss = nn.functional.huber_loss(model(ids[idx]), y[idx])
            for o in opts:
                o.zero_grad()
            loss.backward()
            for o in opts:
                o.step()
            total += loss.item() * len(idx)
        with torch.no_grad():
            r2 = 1 - (model(vids) - vy).pow(2).mean() / vy.var()
        print(f"epoch {e + 1}: huber {total / s.sessions:.4f} val R2 {r2.item():.4f}")


if __name__ == "__main__":
    main()
