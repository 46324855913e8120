"""FixMatch on small synthetic glyph images: 5 labels per class, the rest unlabelled."""
import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
N_CLASSES = 6
LABELS_PER_CLASS = 5
N_UNLAB = 1800
N_TEST = 600
STEPS = 300
BATCH_L = 20
MU = 3
TAU = 0.90
LAMBDA_U = 1.0
EMA_DECAY = 0.97
SIZE = 12


def draw(cls, rng):
    img = np.zeros((SIZE, SIZE), dtype=np.float32)
    o = rng.integers(-1, 2, size=2)
    r, c = 6 + o[0], 6 + o[1]
    L = rng.integers(3, 5)
    if cls == 0:
        img[r, c - L:c + L] = 1
    elif cls == 1:
        img[r - L:r + L, c] = 1
    elif cls == 2:
        for k in range(-L, L):
            img[r + k, c + k] = 1
    elif cls == 3:
        for k in range(-L, L):
            img[r + k, c - k - 1] = 1
    elif cls == 4:
        img[r, c - L:c + L] = 1
        img[r - L:r + L, c] = 1
    else:
        img[r - L + 1:r + L - 1, c - L + 1] = 1
        img[r - L + 1:r + L - 1, c + L - 2] = 1
        img[r - L + 1, c - L + 1:c + L - 1] = 1
        img[r + L - 2, c - L + 1:c + L - 1] = 1
    img = img * rng.uniform(0.6, 1.2) + rng.normal(0, 0.32, img.shape)
    return img.astype(np.float32)


def make_split(n, rng):
    y = rng.integers(0, N_CLASSES, size=n)
    x = np.stack([draw(c, rng) for c in y])[:, None]
    return x, y


def weak(x):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, (dx, dy), dims=(2, 3)) + 0.05 * torch.randn_like(x)


def strong(x):
    dx, dy = torch.randint(-2, 3, (2,)).tolist()
    x = torch.roll(x, (dx, dy), dims=(2, 3))
    x = x * (0.6 + 0.8 * torch.rand(len(x), 1, 1, 1)) + 0.25 * torch.randn_like(x)
    top, left = torch.randint(0, SIZE - 3, (2,)).tolist()
    x = x.clone()
    x[:, :, top:top + 3, left:left + 3] = 0
    return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3, padding=1)
        self.b1 = nn.BatchNorm2d(16)
        self.c2 = nn.Conv2d(16, 32, 3, padding=1)
        self.b2 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32 * 9, N_CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.leaky_relu(self.b1(self.c1(x)), 0.1), 2)
        x = F.max_pool2d(F.leaky_relu(self.b2(self.c2(x)), 0.1), 2)
        return self.fc(x.flatten(1))


class EMA:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for pe, p in zip(self.model.parameters(), model.parameters()):
            pe.mul_(self.decay).add_(p, alpha=1 - self.decay)
        for be, b in zip(self.model.buffers(), model.buffers()):
            be.copy_(b)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    xu, yu = make_split(N_UNLAB, rng)
    xt, yt = make_split(N_TEST, rng)
    yl = np.repeat(np.arange(N_CLASSES), LABELS_PER_CLASS)
    xl = np.stack([draw(c, rng) for c in yl])[:, None]
    mean, std = xu.mean(), xu.std()
    xl, xu, xt = [torch.from_numpy((a - mean) / std) for a in (xl, xu, xt)]
    yl, yu, yt = [torch.from_numpy(a) for a in (yl, yu, yt)]

    model = Net()
    ema = EMA(model, EMA_DECAY)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    total = STEPS
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda k: math.cos(7 * math.pi * k / (16 * total)))

    for step in range(1, STEPS + 1):
        model.train()
        il = torch.randint(0, len(xl), (BATCH_L,))
        iu = torch.randint(0, len(xu), (BATCH_L * MU,))
        u = xu[iu]
        view_w, view_s = weak(u), strong(u)
        batch = torch.cat([weak(xl[il]), view_w, view_s])
        out = model(batch)
        out_l = out[:BATCH_L]
        out_w, out_s = out[BATCH_L:].chunk(2)

        loss_l = F.cross_entropy(out_l, yl[il])
        with torch.no_grad():
            probs = out_w.softmax(dim=-1)
            conf, pseudo = probs.max(dim=-1)
            keep = (conf >= TAU).float()
        loss_u = (F.cross_entropy(out_s, pseudo, reduction="none") * keep).mean()
        loss = loss_l + LAMBDA_U * loss_u

        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        ema.update(model)

        if step % 50 == 0:
            hit = (pseudo == yu[iu]).float()
            q = (hit * keep).sum() / keep.sum().clamp(min=1)
            print(f"step {step:4d} sup {loss_l.item():.4f} unsup {loss_u.item():.4f} used {keep.mean().item():.2f} "
                  f"pseudo-acc {q.item():.3f} ema test acc {accuracy(ema.model, xt, yt):.4f}")
    print(f"final test accuracy {accuracy(ema.model, xt, yt):.4f}")


if __name__ == "__main__":
    main()
