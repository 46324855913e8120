"""Keyword spotting on synthetic filterbank frames, fp16 with a hand-written loss scale."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(66)
torch.cuda.manual_seed_all(66)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False

FRAMES, BANDS, WORDS, BATCH, STEPS = 60, 40, 12, 128, 600


def make_clips(n):
    y = torch.randint(0, WORDS, (n,))
    t = torch.arange(FRAMES).float().view(1, FRAMES, 1)
    b = torch.arange(BANDS).float().view(1, 1, BANDS)
    slope = (y.float() - WORDS / 2).view(-1, 1, 1) * 0.06
    centre = 20 + slope * (t - FRAMES / 2) + 1.5 * torch.randn(n, 1, 1)
    energy = torch.exp(-0.5 * ((b - centre) / 2.0) ** 2)
    return energy + 0.25 * torch.randn(n, FRAMES, BANDS), y


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Linear(BANDS * 5, 512)
        self.c2 = nn.Linear(512, 512)
        self.head = nn.Linear(512, WORDS)

    def forward(self, x):
        w = x.unfold(1, 5, 1).flatten(2)
        h = F.relu(self.c1(w))
        h = F.relu(self.c2(h))
        return self.head(h.mean(1))


class LossScale:
    """multiply the loss, divide the gradients; larger when all goes well"""

    def __init__(self, value=2.0 ** 10, every=30):
        self.value, self.every, self.good = value, every, 0

    def unscale(self, params):
        for p in params:
            p.grad.div_(self.value)

    def advance(self):
        self.good += 1
        if self.good % self.every == 0:
            self.value *= 4.0


def main():
    net = Spotter().cuda()
    params = list(net.parameters())
    opt = torch.optim.Adam(params, lr=1e-3)
    scale = LossScale()
    for step in range(STEPS):
        x, y = make_clips(BATCH)
        x, y = x.cuda(), y.cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            logits = net(x)
            loss = F.cross_entropy(logits.float(), y)
        opt.zero_grad()
        (loss * scale.value).backward()
        scale.unscale(params)
        opt.step()
        scale.advance()
        if step % 15 == 0:
            print(f"step {step} loss {loss.item():.4f} log2 scale {math.log2(scale.value):.0f}")


if __name__ == "__main__":
    main()
