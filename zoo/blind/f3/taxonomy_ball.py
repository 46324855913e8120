import random
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(5)
torch.manual_seed(5)

parents = {i: (i - 1) // 3 for i in range(1, 121)}
N = 121


def ancestors(i):
    out = []
    while i != 0:
        i = parents[i]
        out.append(i)
    return out


edges = [(i, a) for i in range(1, N) for a in ancestors(i)]


class Ball(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.emb = nn.Embedding(n, d)
        nn.init.uniform_(self.emb.weight, -0.01, 0.01)

    def dist(self, u, v):
        sq = (u - v).pow(2).sum(-1)
        a = 1 - u.pow(2).sum(-1)
        b = 1 - v.pow(2).sum(-1)
        return torch.acosh(1 + 2 * sq / (a * b))

    def forward(self, child, cands):
        return self.dist(self.emb(child).unsqueeze(1), self.emb(cands))


def batch(k, negatives=8):
    child, cands = [], []
    for c, p in random.choices(edges, k=k):
        child.append(c)
        cands.append([p] + [random.choice([j for j in range(N) if j not in (c, p)]) for _ in range(negatives)])
    return torch.tensor(child), torch.tensor(cands)


model = Ball(N, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.6)
for step in range(300):
    child, cands = batch(24)
    d = model(child, cands)
    loss = F.cross_entropy(-d, torch.zeros(len(child), dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f} max norm {model.emb.weight.norm(dim=1).max().item():.4f}")
