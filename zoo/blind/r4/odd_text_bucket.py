"""Stage 1 trains word vectors (skip-gram), stage 2 freezes them. Batches hold documents of one length, longest first, in a fixed order."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
V, C, D = 120, 3, 16


def document(y, length):
    own = torch.randint(0, 30, (length,)) + 30 * y
    any_ = torch.randint(90, V, (length,))
    return torch.where(torch.rand(length) < 0.35, own, any_)


def corpus(n):
    ys = torch.randint(0, C, (n,)).tolist()
    return [(document(y, int(torch.randint(4, 10, (1,)))), y) for y in ys]


vec, ctx = nn.Embedding(V, D), nn.Embedding(V, D)
nn.init.normal_(vec.weight, std=0.1)
nn.init.zeros_(ctx.weight)
opt = torch.optim.Adam([*vec.parameters(), *ctx.parameters()], lr=2e-2)
docs = torch.stack([document(y, 12) for y in torch.randint(0, C, (1500,)).tolist()])
for step in range(200):
    d = docs[torch.randint(0, len(docs), (128,))]
    a, b = d[:, torch.randint(0, 6, (1,)).item()], d[:, torch.randint(6, 12, (1,)).item()]
    neg = torch.randint(0, V, (128, 5))
    s_pos = (vec(a) * ctx(b)).sum(-1)
    s_neg = (vec(a)[:, None] * ctx(neg)).sum(-1)
    loss = -F.logsigmoid(s_pos).mean() - F.logsigmoid(-s_neg).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 49:
        print(f"vectors, step {step + 1}: loss {loss.item():.3f}")
vec.weight.requires_grad_(False)

train, test = corpus(400), corpus(200)
by_len = {}
for d, y in train:
    by_len.setdefault(len(d), []).append((d, y))
batches = [part[k:k + 32] for n, part in sorted(by_len.items(), reverse=True) for k in range(0, len(part), 32)]
clf = nn.Sequential(nn.Linear(D, 24), nn.GELU(), nn.Linear(24, C))
opt = torch.optim.NAdam(clf.parameters(), lr=1e-2)
for epoch in range(15):
    tot = 0.0
    for part in batches:
        x, y = torch.stack([d for d, _ in part]), torch.tensor([y for _, y in part])
        loss = F.cross_entropy(clf(vec(x).mean(1)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(y)
    if epoch % 2 == 0:
        with torch.no_grad():
            acc = sum(clf(vec(d).mean(0)).argmax().item() == y for d, y in test) / len(test)
        print(f"classifier, epoch {epoch}: loss {tot / len(train):.3f} test acc {acc:.3f}")
