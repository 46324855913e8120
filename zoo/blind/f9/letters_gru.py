import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(151)


class Adam:
    def __init__(self, params, lr=2e-3, b1=0.9, b2=0.999, eps=1e-8):
        self.params = [p for p in params]
        self.lr, self.b1, self.b2, self.eps = lr, b1, b2, eps
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, t):
        c1 = torch.tensor(1.0 - self.b1 ** t)
        c2 = torch.tensor(1.0 - self.b2 ** t)
        for p, m, v in zip(self.params, self.m, self.v):
            m.mul_(self.b1).add_(p.grad, alpha=1 - self.b1)
            v.mul_(self.b2).addcmul_(p.grad, p.grad, value=1 - self.b2)
            p.sub_(self.lr * (m / c1) / ((v / c2).sqrt() + self.eps))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


class Speller(nn.Module):
    def __init__(self, letters=20, dim=24, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(letters, dim)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, letters)

    def forward(self, x):
        h, _ = self.gru(self.embed(x))
        return self.out(h)


def words(n=2400, length=9, letters=20):
    start = torch.randint(letters, (n, 1))
    jump = torch.randint(1, 4, (n, length)).cumsum(1)
    return (start + jump) % letters


data = words()
model = Speller()
opt = Adam(model.parameters())
batch, t = 24, 1
for epoch in range(5):
    order = torch.randperm(len(data))
    total = 0.0
    for i in range(0, len(data), batch):
        rows = data[order[i:i + batch]]
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step(t)
        t += 1
        total += loss.item()
        if (i // batch) % 25 == 0:
            print(f"epoch {epoch} batch {i // batch} loss {loss.item():.4f}")
    t = 0
    print(f"epoch {epoch} mean {total / (len(data) / batch):.4f}")
