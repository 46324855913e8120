import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SIZE = 14
NAMES = ["bar", "cross", "left", "right", "ring", "square"]


def draw(name, rng):
    img = rng.integers(20, 90, (SIZE, SIZE))
    v = int(rng.integers(120, 200))
    c = SIZE // 2
    if name == "bar":
        img[c - 1:c + 1, 3:11] = v
    elif name == "cross":
        img[c - 1:c + 1, 3:11] = v
        img[3:11, c - 1:c + 1] = v
    elif name in ("left", "right"):
        for k in range(5):
            col = 4 + k if name == "left" else 9 - k
            img[c - k, col] = v
            img[min(c + k, SIZE - 1), col] = v
    elif name == "ring":
        img[4:10, 4:10] = v
        img[5:9, 5:9] = rng.integers(20, 90, (4, 4))
    else:
        img[4:10, 4:10] = v
    return img.astype("uint8")


def load_folder(per_class, seed):
    rng = np.random.default_rng(seed)
    images, names = [], []
    for name, count in per_class.items():
        for _ in range(count):
            images.append(draw(name, rng))
            names.append(name)
    order = rng.permutation(len(names))
    return np.stack(images)[order], np.array(names)[order]


def random_shift(img):
    dy, dx = np.random.randint(-2, 3, 2)
    return np.roll(img, (dy, dx), axis=(0, 1))


def random_gain(img):
    return np.clip(img.astype("float32") * np.random.uniform(0.8, 1.25), 0, 255)


class Pictures(Dataset):
    def __init__(self, images, names, classes, transforms=()):
        self.images, self.transforms = images, transforms
        self.targets = [classes.index(n) for n in names]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        for t in self.transforms:
            img = t(img)
        x = torch.from_numpy(np.ascontiguousarray(img)).float().div(255)
        return (x.unsqueeze(0) - 0.3) / 0.2, self.targets[i]


class ConvNet(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 3, padding=1)
        self.c2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc = nn.Linear(24 * 9, n_out)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(x.flatten(1))


np.random.seed(0)
torch.manual_seed(0)
train_images, train_names = load_folder({n: 110 for n in NAMES}, seed=1)
val_images, val_names = load_folder({"cross": 40, "left": 40, "right": 40, "ring": 40, "square": 40}, seed=2)
classes = sorted(set(train_names))
train_ds = Pictures(train_images, train_names, classes, transforms=[random_shift, random_gain])
val_ds = Pictures(val_images, val_names, classes)
train_dl = DataLoader(train_ds, batch_size=32, shuffle=True, drop_last=True)
val_dl = DataLoader(val_ds, batch_size=64)

net = ConvNet(len(classes))
opt = torch.optim.SGD(net.parameters(), lr=0.04, momentum=0.9, weight_decay=1e-4)
for epoch in range(5):
    net.train()
    tloss = tacc = 0.0
    for x, y in train_dl:
        out = net(x)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tloss += loss.item()
        tacc += (out.argmax(1) == y).float().mean().item()
    net.eval()
    vloss = vright = 0.0
    with torch.no_grad():
        for x, y in val_dl:
            logits = net(x)
            vloss += F.cross_entropy(logits, y, reduction="sum").item()
            vright += (logits.argmax(dim=1) == y).sum().item()
    print(f"epoch {epoch}: loss {tloss / len(train_dl):.3f} acc {tacc / len(train_dl):.3f} | "
          f"val loss {vloss / len(val_ds):.3f} acc {vright / len(val_ds):.3f}")
