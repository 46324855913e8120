"""ComplEx with 1-vs-all softmax in double precision; the whole graph is one batch and Adagrad has lr 0.5."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(5)
N, SHIFTS = 80, [1, 3, 7, -2, -5]
triples = torch.tensor([(i, r, (i + s) % N) for i in range(N) for r, s in enumerate(SHIFTS)])
triples = triples[torch.randperm(len(triples))]
test, train = triples[:60], triples[60:]


class ComplEx(nn.Module):
    def __init__(self, n, m, d):
        super().__init__()
        self.re, self.im = nn.Embedding(n, d), nn.Embedding(n, d)
        self.rre, self.rim = nn.Embedding(m, d), nn.Embedding(m, d)
        for e in (self.re, self.im, self.rre, self.rim):
            nn.init.normal_(e.weight, std=0.1)

    def forward(self, h, r):
        a, b, c, d = self.re(h), self.im(h), self.rre(r), self.rim(r)
        return (a * c - b * d) @ self.re.weight.t() + (a * d + b * c) @ self.im.weight.t()

    def penalty(self, h, r):
        hn = (self.re(h) ** 2 + self.im(h) ** 2).sqrt()
        rn = (self.rre(r) ** 2 + self.rim(r) ** 2).sqrt()
        return (hn ** 3).sum(1).mean() + (rn ** 3).sum(1).mean()


model = ComplEx(N, len(SHIFTS), 32)
opt = torch.optim.Adagrad(model.parameters(), lr=0.5)
for it in range(150):
    h, r, t = train.t()
    loss = F.cross_entropy(model(h, r), t) + 0.02 * model.penalty(h, r)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 15 == 14:
        with torch.no_grad():
            s = model(test[:, 0], test[:, 1])
            rank = (s > s.gather(1, test[:, 2:])).sum(1) + 1
        print(f"it {it + 1} loss {loss.item():.4f} test MRR {(1 / rank.double()).mean():.3f}")
