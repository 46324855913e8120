"""Denoising auto-encoder whose decoder uses the transposed encoder weights; one matrix, used twice."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tied(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.w = nn.Parameter(torch.empty(k, d))
        nn.init.orthogonal_(self.w)
        self.bh, self.bx = nn.Parameter(torch.zeros(k)), nn.Parameter(torch.zeros(d))

    def code(self, x):
        return F.elu(F.linear(x, self.w, self.bh))

    def forward(self, x):
        return F.linear(self.code(x), self.w.t(), self.bx)


def data(n, basis, g):
    y = torch.randint(0, 6, (n,), generator=g)
    amp = 0.25 * torch.randn(n, 12, generator=g)
    amp[torch.arange(n), 2 * y] += 2.0
    amp[torch.arange(n), 2 * y + 1] -= 1.5
    return amp @ basis + 0.1 * torch.randn(n, basis.shape[1], generator=g), y


torch.manual_seed(40)
g = torch.Generator().manual_seed(40)
basis = torch.randn(12, 48, generator=g) / 12 ** 0.5
x, y = data(2500, basis, g)
xt, yt = data(700, basis, g)
net = Tied(48, 16)
opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9, nesterov=True)
for epoch in range(1, 13):
    tot = 0.0
    for idx in torch.randperm(len(x)).split(50):
        clean = x[idx]
        drop = (torch.rand_like(clean) > 0.4).float()
        loss = F.mse_loss(net(clean * drop), clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    if epoch % 2 == 0:
        print(f"epoch {epoch} masked mse {tot / (len(x) / 50):.4f} of variance {x.var().item():.4f}")

with torch.no_grad():
    a, b = net.code(x[:300]), net.code(xt)
probe = nn.Linear(16, 6)
o2 = torch.optim.Adam(probe.parameters(), lr=0.05)
for _ in range(120):
    l2 = F.cross_entropy(probe(a), y[:300])
    o2.zero_grad()
    l2.backward()
    o2.step()
print(f"probe loss {l2.item():.4f} test acc {(probe(b).argmax(1) == yt).float().mean().item():.4f}")
