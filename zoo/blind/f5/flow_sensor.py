"""Coupling flow (RealNVP) on 8-bit sensor vectors mapped to the real line."""
import math

import torch
import torch.nn as nn

torch.manual_seed(6)
torch.set_num_threads(1)

DIM, N, BATCH, EPOCHS = 16, 12800, 64, 2


def read_raw():
    """vectors of grey values 0..255; one in many thousands hits the end of the range"""
    g = torch.Generator().manual_seed(12)
    mix = torch.randn(DIM, DIM, generator=g) * 0.5
    z = torch.randn(N, DIM, generator=g)
    raw = 128 + 22 * torch.tanh(z @ mix / 2) * 2 + 6 * torch.randn(N, DIM, generator=g)
    raw = raw.round().clamp(1, 254)
    raw[8191, 3] = 255.0
    return raw


def to_real(raw):
    p = raw / 255.0
    x = torch.log(p) - torch.log1p(-p)
    logdet = -(torch.log(p) + torch.log1p(-p)).sum(1)
    return x, logdet


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(DIM, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(),
                                 nn.Linear(96, 2 * DIM))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        kept = x * self.mask
        s, t = self.net(kept).chunk(2, 1)
        s = 2.0 * torch.tanh(s / 2.0) * (1 - self.mask)
        t = t * (1 - self.mask)
        return kept + (1 - self.mask) * (x * s.exp() + t), s.sum(1)


class Flow(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        masks = []
        for i in range(layers):
            m = torch.zeros(DIM)
            m[i % 2::2] = 1.0
            masks.append(m)
        self.layers = nn.ModuleList(Coupling(m) for m in masks)

    def log_prob(self, x):
        total = 0.0
        for layer in self.layers:
            x, ld = layer(x)
            total = total + ld
        base = -0.5 * (x ** 2).sum(1) - 0.5 * DIM * math.log(2 * math.pi)
        return base + total


def main():
    raw = read_raw()
    flow = Flow()
    opt = torch.optim.Adam(flow.parameters(), lr=1e-3)
    step = 0
    for epoch in range(EPOCHS):
        order = torch.randperm(N)
        for s in range(0, N, BATCH):
            x, logdet = to_real(raw[order[s:s + BATCH]])
            nll = -(flow.log_prob(x) + logdet).mean()
            opt.zero_grad()
            nll.backward()
            torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            opt.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} bits/dim {nll.item() / DIM / math.log(2):.4f}")
            step += 1


if __name__ == "__main__":
    main()
