"""Blind-ish equaliser: complex-valued FIR + small complex network undoing a dispersive, rotated channel.
Parameters are complex64; autograd gives conjugate gradients, Adam handles them."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)
QPSK = torch.tensor([1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j]) / 2 ** 0.5
TAPS = 11


def channel(n):
    k = torch.randint(0, 4, (n,))
    s = QPSK[k]
    h = torch.tensor([0.2 + 0.1j, 0.9 + 0.3j, 0.4 - 0.35j, -0.15 + 0.1j])
    r = torch.zeros(n, dtype=torch.complex64)
    for d, c in enumerate(h):
        r += c * torch.roll(s, d)
    r = r * (1 + 0.08 * r.abs() ** 2)
    r = r + 0.05 * torch.randn(n, dtype=torch.complex64)
    win = torch.stack([torch.roll(r, TAPS // 2 - d) for d in range(TAPS)], 1)
    return win, s, k


class CLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.w = nn.Parameter(torch.randn(i, o, dtype=torch.complex64) / i ** 0.5)
        self.b = nn.Parameter(torch.zeros(o, dtype=torch.complex64))

    def forward(self, x):
        return x @ self.w + self.b


def modrelu(z):
    return z * torch.tanh(z.abs()) / (z.abs() + 1e-6)


class Equaliser(nn.Module):
    def __init__(self):
        super().__init__()
        self.fir, self.l1, self.l2 = CLinear(TAPS, 1), CLinear(TAPS, 24), CLinear(24, 1)

    def forward(self, w):
        return (self.fir(w) + self.l2(modrelu(self.l1(w)))).squeeze(1)


w, s, k = channel(20000)
wv, sv, kv = channel(5000)
net = Equaliser()
opt = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(12):
    for i in torch.randperm(20000).split(200):
        e = net(w[i]) - s[i]
        loss = (e.real ** 2 + e.imag ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        z = net(wv)
        ser = ((z[:, None] - QPSK).abs().argmin(1) != kv).float().mean()
        evm = (z - sv).abs().pow(2).mean()
    print(f"epoch {epoch} mse {loss.item():.4f} val mse {evm:.4f} symbol errors {ser:.4f}")
raw = ((wv[:, TAPS // 2, None] - QPSK).abs().argmin(1) != kv).float().mean()
print(f"symbol error rate {ser:.4f} (without equaliser {raw:.3f})")
