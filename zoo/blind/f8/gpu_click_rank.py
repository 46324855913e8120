"""List-wise ranking of search results from click features (ListNet style)."""
import torch
import torch.nn as nn

torch.manual_seed(19)
g = torch.Generator().manual_seed(19)

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
QUERIES, DOCS, FEATS = 900, 12, 10
w_true = torch.randn(FEATS, generator=g)
X = torch.randn(QUERIES, DOCS, FEATS, generator=g)
util = X @ w_true
best = util.argmax(1)
REL = torch.nn.functional.one_hot(best, DOCS).float() * 4.0
second = util.scatter(1, best[:, None], -1e9).argmax(1)
REL = REL + torch.nn.functional.one_hot(second, DOCS).float() * 2.0


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.deep = nn.Sequential(
            nn.Linear(FEATS, 64), nn.ReLU(),
            nn.Linear(64, 64), nn.ReLU(),
            nn.Linear(64, 1),
        )
        self.wide = nn.Linear(FEATS, 1, bias=False)

    def forward(self, x):
        return (self.deep(x) + self.wide(x)).squeeze(-1)


def listnet(scores, rel):
    top = (rel == rel.max(1, keepdim=True).values).float()
    target = top / top.sum(1, keepdim=True)
    p = torch.softmax(scores, dim=1)
    return -(target * torch.log(p)).sum(1).mean()


def mrr(scores, rel):
    order = scores.argsort(1, descending=True)
    hit = rel.gather(1, order).argmax(1).float() + 1
    return (1 / hit).mean().item()


def batches(size):
    while True:
        perm = torch.randperm(QUERIES, generator=g)
        for i in range(0, QUERIES - size + 1, size):
            yield perm[i:i + size]


net = Scorer().to(DEV)
X, REL = X.to(DEV), REL.to(DEV)
opt = torch.optim.Adam([
    {"params": net.deep.parameters(), "lr": 4e-3},
    {"params": net.wide.parameters(), "lr": 2e-2},
])
stream = batches(30)
for step in range(600):
    idx = next(stream).to(DEV)
    scores = net(X[idx])
    loss = listnet(scores, REL[idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(f"step {step:4d} loss {loss.item():.4f} mrr {mrr(scores.detach(), REL[idx]):.3f} "
              f"span {(scores.max() - scores.min()).item():.1f}")
