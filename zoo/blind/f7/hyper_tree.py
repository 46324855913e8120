import torch
import torch.nn as nn
import torch.nn.functional as F

DEPTH, BRANCH = 7, 3


def build_tree():
    paths = [()]
    frontier = [()]
    for _ in range(DEPTH - 1):
        frontier = [p + (b,) for p in frontier for b in range(BRANCH)]
        paths += frontier
    index = {p: i for i, p in enumerate(paths)}
    feats = torch.zeros(len(paths), DEPTH * BRANCH + 1)
    for p, i in index.items():
        feats[i, -1] = len(p) / DEPTH
        for d, b in enumerate(p):
            feats[i, d * BRANCH + b] = 1.0
    edges = torch.tensor([(index[p], index[p[:-1]]) for p in paths if p])
    return feats, edges


class BallEncoder(nn.Module):
    """Maps node descriptors into the open unit ball."""

    def __init__(self, d_in, d_out=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, 96), nn.Tanh(), nn.Linear(96, d_out))

    def forward(self, x):
        z = self.body(x)
        r = (z * z).sum(-1, keepdim=True).add(1e-6).sqrt()
        return 0.97 * torch.tanh(r) * z / r


def ball_distance(u, v):
    gap = ((u - v) ** 2).sum(-1)
    du = 1 - (u * u).sum(-1)
    dv = 1 - (v * v).sum(-1)
    return torch.acosh(1 + 2 * gap / (du * dv))


def train(steps=600, batch=8, seed=17):
    torch.manual_seed(seed)
    feats, edges = build_tree()
    enc = BallEncoder(feats.size(1))
    opt = torch.optim.Adam(enc.parameters(), lr=2e-3)
    ema = None
    for step in range(steps):
        pick = edges[torch.randint(len(edges), (batch,))]
        child, parent = enc(feats[pick[:, 0]]), enc(feats[pick[:, 1]])
        pos = ball_distance(child, parent)
        others = torch.stack([ball_distance(child, parent.roll(k, 0)) for k in (1, 2)], 1)
        logits = -torch.cat([pos.unsqueeze(1), others], 1)
        loss = F.cross_entropy(logits, torch.zeros(batch, dtype=torch.long))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ema = loss.item() if ema is None else 0.95 * ema + 0.05 * loss.item()
        if step % 30 == 0:
            print(f"{step:4d} loss {ema:.4f} mean radius {child.norm(dim=1).mean().item():.3f}")
    return enc


if __name__ == "__main__":
    train()
