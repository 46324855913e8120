"""Self-attention over variable-length baskets with a -inf padding mask."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class BasketNet(nn.Module):
    def __init__(self, items=80, d=24):
        super().__init__()
        self.emb = nn.Embedding(items, d)
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out = nn.Linear(d, 4)

    def forward(self, ids, pad):
        h = self.emb(ids)
        att = self.q(h) @ self.k(h).transpose(1, 2) / h.size(-1) ** 0.5
        att = att.masked_fill(pad.unsqueeze(1), float("-inf"))
        h = h + torch.softmax(att, -1) @ self.v(h)
        h = h.masked_fill(pad.unsqueeze(-1), float("-inf")).max(1).values
        return self.out(h)


def baskets(n, g, group):
    size = torch.randint(1, 11, (n,), generator=g)
    ids = torch.randint(0, 80, (n, 10), generator=g)
    pad = torch.arange(10).unsqueeze(0) >= size.unsqueeze(1)
    votes = F.one_hot(group[ids], 4).masked_fill(pad.unsqueeze(-1), 0).sum(1)
    return ids, pad, votes.argmax(1)


def main(steps=400):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(4)
    group = torch.randint(0, 4, (80,), generator=g)
    net = BasketNet()
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
    for step in range(steps):
        ids, pad, y = baskets(48, g, group)
        out = net(ids, pad)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} acc {(out.argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
