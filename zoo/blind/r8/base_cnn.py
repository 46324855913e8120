"""Six kinds of textured patches (two pairs are mirror images top to bottom), small CNN, unequal classes."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

torch.set_num_threads(1)
torch.manual_seed(3)
rng = np.random.default_rng(3)
CLASSES, SIZE, EPOCHS = 6, 20, 8


def templates():
    base = torch.from_numpy(rng.normal(size=(CLASSES, 3, 4, 4))).float()
    t = F.interpolate(base, size=(12, 12), mode="bilinear", align_corners=False)
    t[1] = t[0].flip(1)
    t[3] = t[2].flip(1)
    return (t / t.flatten(1).std(1).view(-1, 1, 1, 1)).numpy()


PROTO = templates()


def make(n, share):
    y = rng.choice(CLASSES, size=n, p=share)
    x = rng.normal(0, 34, size=(n, 3, SIZE, SIZE)) + rng.normal(120, 15, size=(n, 1, 1, 1))
    for i, c in enumerate(y):
        p = PROTO[c][:, :, ::-1] if rng.random() < 0.5 else PROTO[c]
        a, b = rng.integers(0, SIZE - 12, size=2)
        x[i, :, a:a + 12, b:b + 12] += p * rng.uniform(10, 28)
    return x.clip(0, 255).astype(np.uint8), y.astype(np.int64)


class Patches(Dataset):
    def __init__(self, images, labels, mean, std, train):
        self.images, self.labels, self.train = images, labels, train
        self.mean, self.std = mean, std

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = torch.from_numpy(self.images[i]).float() / 255.0
        x = (x - self.mean) / self.std
        if self.train:
            if torch.rand(()) < 0.5:
                x = x.flip(2)
            dy, dx = torch.randint(-2, 3, (2,)).tolist()
            x = torch.roll(x, (dy, dx), (1, 2))
        return x, int(self.labels[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.stem = block(3, 16)
        self.mid = block(16, 32)
        self.top = block(32, 48)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(48, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(self.stem(x), 2)
        x = F.max_pool2d(self.mid(x), 2)
        x = self.top(x)
        x = x.amax(dim=(2, 3))
        return self.fc(self.drop(x))


def evaluate(model, loader):
    model.eval()
    hits, seen, loss = torch.zeros(CLASSES), torch.zeros(CLASSES), 0.0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += F.cross_entropy(out, y, reduction="sum").item()
            ok = (out.argmax(1) == y).float()
            hits.index_add_(0, y, ok)
            seen.index_add_(0, y, torch.ones_like(ok))
    return loss / seen.sum().item(), (hits.sum() / seen.sum()).item(), (hits / seen.clamp(min=1)).mean().item()


share = np.array([0.32, 0.08, 0.28, 0.08, 0.16, 0.08])
x_tr, y_tr = make(1000, share)
x_va, y_va = make(400, np.full(CLASSES, 1 / CLASSES))
x_te, y_te = make(500, np.full(CLASSES, 1 / CLASSES))
mean = torch.tensor(x_tr.mean(axis=(0, 2, 3)) / 255.0).float().view(3, 1, 1)
std = torch.tensor(x_tr.std(axis=(0, 2, 3)) / 255.0).float().view(3, 1, 1)

train_set = Patches(x_tr, y_tr, mean, std, train=True)
val_set = Patches(x_va, y_va, mean, std, train=False)
test_set = Patches(x_te, y_te, mean, std, train=False)

class_weight = 1.0 / torch.bincount(torch.from_numpy(y_tr), minlength=CLASSES).float()
sample_weight = class_weight[torch.from_numpy(y_tr)]
sampler = WeightedRandomSampler(sample_weight, num_samples=len(train_set), replacement=True)
train_loader = DataLoader(train_set, batch_size=64, sampler=sampler, drop_last=True)
val_loader = DataLoader(val_set, batch_size=200)
test_loader = DataLoader(test_set, batch_size=200)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[5, 7], gamma=0.1)
best, best_state = -1.0, None

for epoch in range(EPOCHS):
    model.train()
    total, right, count = 0.0, 0, 0
    for x, y in train_loader:
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        right += (out.argmax(1) == y).sum().item()
        count += len(y)
    scheduler.step()
    val_loss, val_acc, val_bal = evaluate(model, val_loader)
    if val_bal > best:
        best, best_state = val_bal, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch:2d} lr {scheduler.get_last_lr()[0]:.4f} train loss {total / count:.3f} acc {right / count:.3f} "
          f"| val loss {val_loss:.3f} acc {val_acc:.3f} balanced {val_bal:.3f}")

model.load_state_dict(best_state)
test_loss, test_acc, test_bal = evaluate(model, test_loader)
print(f"test loss {test_loss:.3f} accuracy {test_acc:.3f} balanced {test_bal:.3f} (chance {1 / CLASSES:.3f})")
