"""Frozen word vectors; the head starts from the ridge solution, so the first loss is already low and little is left to gain."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
V, L, C, D = 300, 15, 4, 20
topic_of_word = torch.randint(0, C + 3, (V,))                # some words belong to no class


def docs(n):
    y = torch.randint(0, C, (n,))
    w = torch.where(topic_of_word[None] == y[:, None], 3.0, 1.0)
    return torch.multinomial(w, L, replacement=True), y


raw, _ = docs(3000)
counts = F.one_hot(raw, V).sum(1).float()
co = counts.t() @ counts
co = torch.log1p(co / co.mean())
u, s, _ = torch.svd_lowrank(co - co.mean(), q=D)
emb = nn.Embedding.from_pretrained(u * s.sqrt(), freeze=True)

xt, yt = docs(500)
xv, yv = docs(300)


def feats(x):
    return emb(x).mean(1)


f = feats(xt)
mu, sd = f.mean(0), f.std(0)
norm = lambda z: (z - mu) / sd
ft, fv = norm(f), norm(feats(xv))
target = 4 * (F.one_hot(yt, C).float() - 1 / C)
A = torch.linalg.solve(ft.t() @ ft + 10 * torch.eye(D), ft.t() @ target)

head = nn.Linear(D, C)
with torch.no_grad():
    head.weight.copy_(A.t())
    head.bias.zero_()
opt = torch.optim.SGD(head.parameters(), lr=0.02, momentum=0.9)
for epoch in range(12):
    with torch.no_grad():
        out = head(fv)
        print(f"epoch {epoch} train {F.cross_entropy(head(ft), yt):.4f} val {F.cross_entropy(out, yv):.4f} acc {(out.argmax(1) == yv).float().mean():.3f}")
    for i in torch.randperm(500).split(50):
        opt.zero_grad()
        F.cross_entropy(head(ft[i]), yt[i]).backward()
        opt.step()
