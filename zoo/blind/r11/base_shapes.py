# Sign recognition: 20x20 gray images of arrows and a few other symbols, small ResNet.
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)

CLASSES = ["left", "right", "up", "down", "circle", "cross"]


def draw(name, rng):
    img = np.zeros((20, 20), np.float32)
    cy, cx = rng.integers(8, 12, 2)
    r = int(rng.integers(4, 7))
    yy, xx = np.mgrid[0:20, 0:20]
    if name == "circle":
        d = np.hypot(yy - cy, xx - cx)
        img[np.abs(d - r) < 0.9] = 1
    elif name == "cross":
        img[(np.abs(yy - cy - (xx - cx)) < 1) & (np.abs(yy - cy) <= r)] = 1
        img[(np.abs(yy - cy + (xx - cx)) < 1) & (np.abs(yy - cy) <= r)] = 1
    else:
        # arrow pointing left, then rotated into place
        img[cy, cx - r:cx + r + 1] = 1
        for k in range(4):
            img[cy - k, cx - r + k] = 1
            img[cy + k, cx - r + k] = 1
        img = np.rot90(img, {"left": 0, "down": 1, "right": 2, "up": 3}[name]).copy()
    img = img * rng.uniform(0.5, 1.0) + rng.normal(0, 0.22, (20, 20))
    return img.astype(np.float32)


class Signs(Dataset):
    def __init__(self, per_class, seed, train=False):
        rng = np.random.default_rng(seed)
        self.x, self.y = [], []
        for label, name in enumerate(CLASSES):
            for _ in range(per_class):
                self.x.append(draw(name, rng))
                self.y.append(label)
        self.train = train

    def __len__(self):
        return len(self.x)

    def augment(self, img):
        dy, dx = torch.randint(-2, 3, (2,)).tolist()
        img = torch.roll(img, (dy, dx), (1, 2))
        img = img * (0.8 + 0.4 * torch.rand(1))
        return img

    def __getitem__(self, i):
        img = torch.from_numpy(self.x[i]).unsqueeze(0)
        if self.train:
            img = self.augment(img)
        return img, self.y[i]


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(cout)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity() if cin == cout and stride == 1 else nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.b1(self.c1(x)))
        return F.relu(self.b2(self.c2(h)) + self.skip(x))


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Block(16, 16, 2), Block(16, 32, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, len(CLASSES)),
    )


class Trainer:
    def __init__(self, model, train_ds, val_ds, epochs=8, batch_size=64, lr=0.08, ema_decay=0.97):
        self.model = model
        self.ema = copy.deepcopy(model)
        self.ema_decay = ema_decay
        self.epochs = epochs
        self.train_loader = DataLoader(train_ds, batch_size, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val_ds, 50)
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(
            self.opt, max_lr=lr, total_steps=epochs * len(self.train_loader))

    @torch.no_grad()
    def update_ema(self):
        for e, p in zip(self.ema.parameters(), self.model.parameters()):
            e.lerp_(p, 1 - self.ema_decay)
        for e, b in zip(self.ema.buffers(), self.model.buffers()):
            e.copy_(b)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.opt.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.opt.step()
            self.sched.step()
            self.update_ema()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self, net, loader):
        net.eval()
        loss, hit, n = 0.0, 0, 0
        for x, y in loader:
            out = net(x)
            loss += F.cross_entropy(out, y, reduction="sum").item()
            hit += (out.argmax(1) == y).sum().item()
            n += len(y)
        return loss / n, hit / n

    def fit(self):
        for epoch in range(1, self.epochs + 1):
            tr = self.train_epoch()
            vl, va = self.evaluate(self.ema, self.val_loader)
            lr = self.opt.param_groups[0]["lr"]
            print(f"epoch {epoch}: train loss {tr:.3f}  val loss {vl:.3f}  val acc {va:.3f}  lr {lr:.4f}")


if __name__ == "__main__":
    torch.manual_seed(7)
    trainer = Trainer(build_model(), Signs(400, 1, train=True), Signs(100, 2))
    trainer.fit()
    loss, acc = trainer.evaluate(trainer.ema, DataLoader(Signs(150, 3), 50))
    print(f"test loss {loss:.3f}  test accuracy {acc:.3f}")
