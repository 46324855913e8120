"""Quantisation-aware training with 4-bit weights and activations. round() has zero gradient, so a
straight-through estimator is used."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(0)


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


def quant_weight(w, bits=4):
    q = 2 ** (bits - 1) - 1
    s = w.abs().amax(1, keepdim=True).detach() / q + 1e-8
    return RoundSTE.apply(w / s) * s


def quant_act(x, alpha, bits=4):
    q = 2 ** bits - 1
    x = torch.minimum(F.relu(x), alpha)
    return RoundSTE.apply(x / alpha * q) * alpha / q


class QLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, quant_weight(self.weight), self.bias)


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = QLinear(64, 128), QLinear(128, 64), QLinear(64, 10)
        self.al1, self.al2 = nn.Parameter(torch.tensor(3.0)), nn.Parameter(torch.tensor(3.0))

    def forward(self, x):
        x = quant_act(self.a(x), self.al1)
        x = quant_act(self.b(x), self.al2)
        return self.c(x)


d = load_digits()
X, Y = torch.tensor(d.data / 16).float(), torch.tensor(d.target)
perm = torch.randperm(len(X))
tr, te = perm[:1300], perm[1300:]
net = QNet()
opt = torch.optim.Adam(net.parameters(), 2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 40)
for epoch in range(40):
    tot = 0
    for i in tr[torch.randperm(1300)].split(50):
        loss = F.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() / 26
    sched.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            acc = (net(X[te]).argmax(1) == Y[te]).float().mean()
        print(f"epoch {epoch + 1}: loss {tot:.4f} test acc (4 bit) {acc:.3f} clip levels {net.al1.item():.2f} {net.al2.item():.2f}")
levels = torch.unique((quant_weight(net.a.weight)[0] / quant_weight(net.a.weight)[0].abs().max() * 7).round())
print(f"weight levels in a row {len(levels)}, 4-bit test accuracy {acc:.3f}")
