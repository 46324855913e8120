"""Two-tower contrastive training: 16x16 colour scenes and their captions, retrieval recall."""
import json
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(21)

COLOURS = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "pink": (1, 0, 1), "white": (1, 1, 1)}
SHAPES = ["square", "bar", "post", "cross"]
PLACES = ["left", "right", "top", "bottom"]


def paint(canvas, colour, shape, place, rng):
    cy, cx = {"left": (8, 3), "right": (8, 12), "top": (3, 8), "bottom": (12, 8)}[place]
    cy, cx = cy + rng.integers(-1, 2), cx + rng.integers(-1, 2)
    h, w = {"square": (2, 2), "bar": (1, 3), "post": (3, 1), "cross": (2, 2)}[shape]
    box = np.zeros((16, 16), bool)
    if shape == "cross":
        box[cy, max(cx - 2, 0):cx + 3] = True
        box[max(cy - 2, 0):cy + 3, cx] = True
    else:
        box[max(cy - h, 0):cy + h, max(cx - w, 0):cx + w] = True
    for ch in range(3):
        canvas[ch][box] = COLOURS[colour][ch]


def write_corpus(folder, n, seed):
    """one image file per item and a caption table keyed by item number, as an export tool leaves them"""
    rng = np.random.default_rng(seed)
    captions = {}
    for i in range(n):
        canvas = rng.uniform(0, 0.4, (3, 16, 16))
        places = rng.choice(PLACES, 2, replace=False)
        parts = []
        for p in places:
            c, s = rng.choice(list(COLOURS)), rng.choice(SHAPES)
            paint(canvas, c, s, p, rng)
            parts.append(f"{c} {s} {p}")
        canvas += rng.normal(0, 0.3, canvas.shape)
        np.save(os.path.join(folder, f"img_{i}.npy"), canvas.astype(np.float32))
        text = " and ".join(parts)
        captions[i] = f"a {text}" if rng.random() < 0.5 else text
    with open(os.path.join(folder, "captions.json"), "w") as f:
        json.dump(captions, f)


def read_corpus(folder):
    names = sorted((f for f in os.listdir(folder) if f.startswith("img_")), key=lambda f: int(f[4:-4]))
    images = torch.from_numpy(np.stack([np.load(os.path.join(folder, f)) for f in names]))
    with open(os.path.join(folder, "captions.json")) as f:
        table = json.load(f)
    texts = [table[k] for k in sorted(table, key=int)]
    return (images - 0.3) / 0.3, texts


WORDS = ["<pad>", "a", "and"] + list(COLOURS) + SHAPES + PLACES
IDS = {w: i for i, w in enumerate(WORDS)}


def tokenize(texts, length=9):
    out = torch.zeros(len(texts), length, dtype=torch.long)
    for r, t in enumerate(texts):
        ids = [IDS[w] for w in t.split()]
        out[r, :len(ids)] = torch.tensor(ids)
    return out


class ImageTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(48, 48, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48 * 16, dim))

    def forward(self, x):
        return self.net(x)


class TextTower(nn.Module):
    def __init__(self, dim, width=48):
        super().__init__()
        self.tok = nn.Embedding(len(WORDS), width)
        self.pos = nn.Parameter(0.02 * torch.randn(9, width))
        self.rnn = nn.GRU(width, 64, batch_first=True, bidirectional=True)
        self.proj = nn.Linear(128, dim)

    def forward(self, ids):
        h, _ = self.rnn(self.tok(ids) + self.pos)
        keep = (ids != 0).unsqueeze(-1).float()
        return self.proj((h * keep).sum(1) / keep.sum(1))


class DualEncoder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.image, self.text = ImageTower(dim), TextTower(dim)
        self.log_scale = nn.Parameter(torch.tensor(np.log(1 / 0.1), dtype=torch.float32))

    def forward(self, x, ids):
        zi = F.normalize(self.image(x), dim=-1)
        zt = F.normalize(self.text(ids), dim=-1)
        return zi, zt, self.log_scale.exp().clamp(max=50)


def clip_loss(zi, zt, scale):
    logits = scale * zi @ zt.t()
    target = torch.arange(len(zi))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


@torch.no_grad()
def recall(model, images, ids):
    model.eval()
    zi, zt, scale = model(images, ids)
    sim = zi @ zt.t()
    rank = (sim > sim.diag().unsqueeze(1)).sum(1)
    return clip_loss(zi, zt, scale).item(), (rank < 1).float().mean().item(), (rank < 5).float().mean().item()


with tempfile.TemporaryDirectory() as tmp:
    data = {}
    for split, n, seed in [("train", 1000, 1), ("val", 250, 2), ("test", 250, 3)]:
        folder = os.path.join(tmp, split)
        os.makedirs(folder)
        write_corpus(folder, n, seed)
        images, texts = read_corpus(folder)
        data[split] = (images, tokenize(texts))

model = DualEncoder()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
images, ids = data["train"]
batch, epochs = 100, 13
for epoch in range(1, epochs + 1):
    model.train()
    total = 0.0
    order = torch.randperm(len(images))
    for k in range(0, len(order), batch):
        sel = order[k:k + batch]
        loss = clip_loss(*model(images[sel], ids[sel]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(sel)
    vl, r1, r5 = recall(model, *data["val"])
    print(f"epoch {epoch:2d} train {total / len(order):.4f} val {vl:.4f} R@1 {r1:.3f} R@5 {r5:.3f} scale {model.log_scale.exp().item():.1f}")
_, r1, r5 = recall(model, *data["test"])
print(f"test: R@1 {r1:.3f} R@5 {r5:.3f} (gallery of {len(data['test'][0])})")
