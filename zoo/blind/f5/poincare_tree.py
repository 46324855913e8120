"""Hyperbolic embedding of a taxonomy in the Poincare disc."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(95)
torch.set_num_threads(1)

DEPTH, BRANCH, DIM, NEG, BATCH, STEPS = 5, 3, 5, 10, 64, 600


def make_tree():
    """pairs (node, ancestor)"""
    parent = {0: None}
    level, nxt = [0], 1
    for _ in range(DEPTH - 1):
        new = []
        for p in level:
            for _ in range(BRANCH):
                parent[nxt] = p
                new.append(nxt)
                nxt += 1
        level = new
    pairs = []
    for node in parent:
        a = parent[node]
        while a is not None:
            pairs.append((node, a))
            a = parent[a]
    return torch.tensor(pairs), nxt


class Disc(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.pos = nn.Parameter((torch.rand(n, DIM) - 0.5) * 0.02)

    def distance(self, a, b):
        u, v = self.pos[a], self.pos[b]
        gap = (u - v).pow(2).sum(-1)
        room = (1 - u.pow(2).sum(-1)) * (1 - v.pow(2).sum(-1))
        return torch.acosh(1 + 2 * gap / room + 1e-7)

    def loss(self, node, anc, neg):
        d_pos = self.distance(node, anc)
        d_neg = self.distance(node[:, None].expand_as(neg), neg)
        logits = -torch.cat([d_pos[:, None], d_neg], 1)
        return F.cross_entropy(logits, torch.zeros(len(node), dtype=torch.long))


def main():
    pairs, n = make_tree()
    model = Disc(n)
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    print(n, "nodes", len(pairs), "pairs")
    for step in range(STEPS):
        rows = torch.randint(0, len(pairs), (BATCH,))
        node, anc = pairs[rows].unbind(1)
        neg = (node[:, None] + torch.randint(1, n, (BATCH, NEG))) % n
        loss = model.loss(node, anc, neg)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 20 == 0:
            radius = model.pos.detach().norm(dim=1)
            print(f"step {step} loss {loss.item():.4f} mean radius {radius.mean():.3f}")


if __name__ == "__main__":
    main()
