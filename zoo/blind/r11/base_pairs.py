"""CLIP-like pretraining of an image and a caption encoder, then retrieval and a linear probe.

Pictures: one coloured blob pattern with (shape, colour, position); captions describe it with
synonyms in random order plus filler words.
"""
import itertools

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

SHAPES, COLOURS, PLACES = 4, 4, 5
N_TRAIN, N_TEST = 4000, 1000
STEPS, BATCH = 450, 100


def render(shape, colour, place, rng):
    img = rng.normal(0, 0.3, (3, 12, 12)).astype(np.float32)
    cy, cx = [(2, 2), (2, 9), (9, 2), (9, 9), (6, 6)][place]
    cy, cx = cy + rng.integers(0, 2), cx + rng.integers(0, 2)
    pts = {
        0: [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)],
        1: [(-1, 0), (0, 0), (1, 0)],
        2: [(0, -1), (0, 0), (0, 1)],
        3: [(-1, 0), (1, 0), (0, -1), (0, 1)],
    }[shape]
    rgb = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])[colour]
    for dy, dx in pts:
        y, x = np.clip(cy + dy, 0, 11), np.clip(cx + dx, 0, 11)
        img[:, y, x] += 1.5 * rgb
    return img


def describe(shape, colour, place, rng):
    # two synonyms for every notion, vocabulary ids start at 20 after the fillers
    words = [20 + 2 * shape, 40 + 2 * colour, 60 + 2 * place]
    words = [w + rng.integers(0, 2) for w in words] + list(rng.integers(0, 20, 3))
    return rng.permutation(words)


def make_split(n, seed):
    rng = np.random.default_rng(seed)
    combos = list(itertools.product(range(SHAPES), range(COLOURS), range(PLACES)))
    lab = rng.integers(0, len(combos), n)
    imgs = np.stack([render(*combos[k], rng) for k in lab])
    caps = np.stack([describe(*combos[k], rng) for k in lab])
    return torch.tensor(imgs), torch.tensor(caps), torch.tensor(lab)


class ImageEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 9, 64), nn.ReLU())
        self.proj = nn.Linear(64, dim)

    def forward(self, x):
        return self.proj(self.net(x))


class TextEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.Embedding(80, 48)
        self.mlp = nn.Sequential(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, dim))

    def forward(self, t):
        return self.mlp(self.emb(t).sum(1))


class Clip(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.image, self.text = ImageEncoder(dim), TextEncoder(dim)
        self.log_scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))

    def embed(self, x, t):
        zi = F.normalize(self.image(x), dim=1)
        zt = F.normalize(self.text(t), dim=1)
        return zi, zt

    def forward(self, x, t):
        zi, zt = self.embed(x, t)
        return self.log_scale.exp().clamp(max=50) * zi @ zt.T


def clip_loss(logits):
    target = torch.arange(len(logits))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


@torch.no_grad()
def retrieval(model, x, t, lab):
    """Share of pictures whose nearest caption tells the same shape, colour and place."""
    zi, zt = model.embed(x, t)
    return (lab[(zi @ zt.T).argmax(1)] == lab).float().mean().item()


def linear_probe(model, train, test):
    with torch.no_grad():
        ftr, fte = model.image.net(train[0]), model.image.net(test[0])
    mu, sd = ftr.mean(0), ftr.std(0) + 1e-6
    ftr, fte = (ftr - mu) / sd, (fte - mu) / sd
    head = nn.Linear(ftr.size(1), SHAPES * COLOURS * PLACES)
    opt = torch.optim.Adam(head.parameters(), lr=0.02, weight_decay=1e-4)
    for _ in range(150):
        loss = F.cross_entropy(head(ftr), train[2])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return (head(fte).argmax(1) == test[2]).float().mean().item()


def main():
    torch.manual_seed(8)
    train, test = make_split(N_TRAIN, 0), make_split(N_TEST, 1)
    val = make_split(500, 2)
    model = Clip()
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-3, weight_decay=1e-2)
    running = []
    for step in range(1, STEPS + 1):
        idx = torch.randint(0, N_TRAIN, (BATCH,))
        loss = clip_loss(model(train[0][idx], train[1][idx]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        running.append(loss.item())
        if step % 75 == 0:
            print(f"step {step}: loss {np.mean(running):.3f} (chance {np.log(BATCH):.2f})  "
                  f"val retrieval {retrieval(model, *val):.3f}  scale {model.log_scale.exp().item():.1f}")
            running = []
    print(f"test retrieval {retrieval(model, *test):.3f}")
    print(f"linear probe: test accuracy {linear_probe(model, train, test):.3f}")


if __name__ == "__main__":
    main()
