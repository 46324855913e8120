"""Dead reckoning: integrate a noisy velocity signal with a leaky recurrent net (identity init)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
torch.cuda.manual_seed_all(8)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False

HIDDEN = 256
BATCH = 128
STEPS = 240


def make_signal(length):
    g = torch.Generator().manual_seed(99)
    t = torch.arange(length).float()
    signal = torch.zeros(length)
    for _ in range(6):
        f = 0.02 + 0.2 * torch.rand(1, generator=g)
        a = 0.2 + 0.5 * torch.rand(1, generator=g)
        p = 2 * math.pi * torch.rand(1, generator=g)
        envelope = 1.0 + 0.5 * torch.sin(t * f / 40)
        signal += a * envelope * torch.sin(2 * math.pi * f * t + p)
    return signal + 0.02 * torch.randn(length, generator=g)


class IRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(1, HIDDEN)
        self.rec = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, 1)
        with torch.no_grad():
            self.rec.weight.copy_(torch.eye(HIDDEN)).add_(0.002 * torch.randn(HIDDEN, HIDDEN))
            self.inp.weight.mul_(0.15)

    def forward(self, wave, h):
        preds = []
        for t in range(wave.shape[1]):
            h = F.leaky_relu(self.inp(wave[:, t:t + 1]) + self.rec(h), 0.4)
            preds.append(self.out(h))
        return torch.cat(preds, 1), h


def batches(signal, length):
    starts = torch.randint(0, len(signal) - length - 1, (BATCH,))
    idx = starts[:, None] + torch.arange(length + 1)
    chunk = signal[idx]
    return chunk[:, :-1], 0.2 * chunk[:, :-1].cumsum(1)


def context_length(step):
    """long excerpts once the short ones are learned"""
    return 16 if step < 120 else 240


def main():
    signal = make_signal(20000)
    net = IRNN().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.00005, momentum=0.9)
    best = float("inf")
    for step in range(STEPS):
        length = context_length(step)
        x, y = batches(signal, length)
        x, y = x.cuda(), y.cuda()
        pred, _ = net(x, torch.zeros(BATCH, HIDDEN, device="cuda"))
        loss = F.mse_loss(pred, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        best = min(best, loss.item())
        if step % 10 == 0:
            print(f"step {step} len {length} loss {loss.item():.4f} best {best:.4f}")


if __name__ == "__main__":
    main()
