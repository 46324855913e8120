"""Token tagger with gradient accumulation."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    vocab: int = 120
    tags: int = 5
    length: int = 12
    micro: int = 8
    micro_batches: int = 1
    grow_every: int = 10
    steps: int = 240
    lr: float = 0.2
    momentum: float = 0.9
    seed: int = 61


class Stream:
    def __init__(self, s):
        self.s = s
        self.g = torch.Generator().manual_seed(s.seed)
        self.word_tag = torch.randint(0, s.tags, (s.vocab,), generator=self.g)

    def micro_batch(self):
        s = self.s
        x = torch.randint(1, s.vocab, (s.micro, s.length), generator=self.g)
        y = self.word_tag[x]
        after = torch.roll(x, 1, 1) % 10 == 0
        y = torch.where(after, (y + 1) % s.tags, y)
        noise = torch.rand(y.shape, generator=self.g) < 0.08
        return x, torch.where(noise, torch.randint(0, s.tags, y.shape, generator=self.g), y)


class Tagger(nn.Module):
    def __init__(self, s, dim=32):
        super().__init__()
        self.emb = nn.Embedding(s.vocab, dim)
        self.conv = nn.Conv1d(dim, 64, 3, padding=1)
        self.hid = nn.Linear(64, 64)
        self.out = nn.Linear(64, s.tags)

    def forward(self, x):
        h = F.relu(self.conv(self.emb(x).transpose(1, 2))).transpose(1, 2)
        return self.out(F.relu(self.hid(h)))


def update(model, opt, stream, count):
    opt.zero_grad()
    seen = 0.0
    for _ in range(count):
        x, y = stream.micro_batch()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        seen += loss.item()
    opt.step()
    return seen / count


def main():
    s = Settings()
    torch.manual_seed(s.seed)
    stream = Stream(s)
    model = Tagger(s)
    opt = torch.optim.SGD(model.parameters(), lr=s.lr, momentum=s.momentum)
    for step in range(s.steps):
        value = update(model, opt, stream, s.micro_batches)
        if (step + 1) % s.grow_every == 0:
            s.micro_batches += 1
        if step % 12 == 0:
            print(f"step {step:4d} micro-batches {s.micro_batches:2d} loss {value:.4f}")


if __name__ == "__main__":
    main()
