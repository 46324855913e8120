# mixture of experts with hash routing
import torch
from torch import nn


class HashMoE(nn.Module):
    def __init__(self, vocab, n_exp, d, classes):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.register_buffer("route", torch.arange(vocab) % n_exp)
        self.w = nn.Parameter(torch.randn(n_exp, d, d) / d ** 0.5)
        self.head = nn.Linear(d, classes)

    def forward(self, ids):
        h = self.emb(ids)
        w = self.w[self.route[ids]]
        h = h + torch.tanh(torch.einsum("bld,blde->ble", h, w))
        return self.head(h.mean(1))


torch.manual_seed(18)
V, L, C = 24, 8, 4
votes = torch.randint(0, C, (V,))


def batch(n):
    ids = torch.randint(0, V, (n, L))
    counts = nn.functional.one_hot(votes[ids], C).sum(1)
    return ids, (counts + 0.01 * torch.arange(C)).argmax(1)


net = HashMoE(V, 4, 24, C)
opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
val = batch(500)
for step in range(1, 251):
    ids, y = batch(32)
    loss = nn.functional.cross_entropy(net(ids), y, label_smoothing=0.1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 0:
        with torch.no_grad():
            acc = (net(val[0]).argmax(1) == val[1]).float().mean()
        print(f"step {step}: smoothed loss {loss.item():.3f} val acc {acc:.3f}")
