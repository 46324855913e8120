"""Discrete auto-encoder with a Gumbel-softmax codebook."""
import torch
import torch.nn as nn

torch.manual_seed(88)


def signals(n, g):
    phase = torch.randint(0, 8, (n, 1), generator=g).float() * 0.785
    freq = torch.randint(1, 4, (n, 1), generator=g).float()
    t = torch.linspace(0, 6.28, 32)
    return torch.sin(freq * t + phase) + 0.05 * torch.randn(n, 32, generator=g)


class Relaxed(nn.Module):
    """Relaxed one-hot sample."""

    def __init__(self, start, rate):
        super().__init__()
        self.start = start
        self.rate = rate
        self.ticks = 0

    def sharpness(self):
        return self.start - self.rate * self.ticks

    def forward(self, logits):
        u = torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)
        noisy = logits - torch.log(-torch.log(u))
        y = torch.softmax(noisy / self.sharpness(), -1)
        if self.training:
            self.ticks += 1
        return y


class Coder(nn.Module):
    def __init__(self, slots=4, size=8, dim=12):
        super().__init__()
        self.slots, self.size = slots, size
        self.enc = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, slots * size))
        self.relax = Relaxed(1.0, 1 / 256)
        self.book = nn.Parameter(torch.randn(slots, size, dim) * 0.3)
        self.dec = nn.Sequential(nn.Linear(slots * dim, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        logits = self.enc(x).view(-1, self.slots, self.size)
        y = self.relax(logits)
        code = torch.einsum("bsk,skd->bsd", y, self.book).flatten(1)
        return self.dec(code), logits


def usage_entropy(logits):
    p = logits.softmax(-1).mean(0)
    return -(p * (p + 1e-8).log()).sum(-1).mean()


g = torch.Generator().manual_seed(88)
coder = Coder()
opt = torch.optim.Adam(coder.parameters(), lr=3e-3)
for step in range(400):
    x = signals(64, g)
    out, logits = coder(x)
    loss = (out - x).pow(2).mean() - 0.01 * usage_entropy(logits)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(coder.parameters(), 2.0)
    opt.step()
    if step % 20 == 0:
        print(f"step {step:4d} loss {loss.item():.4f}")
