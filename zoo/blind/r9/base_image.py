"""Small CNN for pictograms (arrows and simple signs), own augmentation, early stopping, best checkpoint kept on disk."""
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
SEED = 11
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)

SIZE = 20
CLASSES = ["arrow_left", "arrow_right", "cross", "ring", "bars", "no_sign"]


def draw(cls):
    """One uint8 picture, 3 x SIZE x SIZE."""
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    cx, cy = rng.uniform(8, 11, size=2)
    r = rng.uniform(4.5, 7.0)
    dx, dy = xx - cx, yy - cy
    if cls in (0, 1):
        sign = -1.0 if cls == 0 else 1.0
        u = dx * sign
        shaft = (np.abs(dy) < 1.1) & (u > -r) & (u < r * 0.4)
        tip = (u > 0) & (u < r) & (np.abs(dy) < (r - u) * 0.8)
        m = shaft | tip
    elif cls == 2:
        m = ((np.abs(dx) < 1.2) & (np.abs(dy) < r)) | ((np.abs(dy) < 1.2) & (np.abs(dx) < r))
    elif cls == 3:
        d = np.sqrt(dx ** 2 + dy ** 2)
        m = (d < r) & (d > r - 2.2)
    elif cls == 4:
        m = (np.abs(dx) < r) & (np.abs(dy) < r) & ((np.abs(dy) % 4) < 1.6)
    else:
        m = np.zeros_like(dx, dtype=bool)
        if rng.random() < 0.15:          # overexposed frame
            return np.full((3, SIZE, SIZE), 255, dtype=np.uint8)
    fg = rng.integers(120, 215, size=3)
    bg = rng.integers(50, 130, size=3)
    img = np.where(m[None], fg[:, None, None], bg[:, None, None]).astype(np.float32)
    img += rng.normal(0, 28, size=img.shape)
    return np.clip(img, 0, 255).astype(np.uint8)


def make_set(n):
    y = rng.integers(0, len(CLASSES), size=n)
    x = np.stack([draw(c) for c in y])
    return torch.from_numpy(x), torch.from_numpy(y).long()


x_train, y_train = make_set(1500)
x_val, y_val = make_set(500)
x_test, y_test = make_set(1000)


def to_input(x):
    """Each picture is brought to mean 0 and standard deviation 1."""
    x = x.float() / 255
    mean = x.mean(dim=(1, 2, 3), keepdim=True)
    std = x.std(dim=(1, 2, 3), keepdim=True)
    return (x - mean) / (std + 1e-2)


def augment(x):
    """x: uint8 batch. Shift, flip, brightness, sensor noise."""
    n = x.shape[0]
    # random shift by up to two pixels
    x = F.pad(x.float(), (2, 2, 2, 2), mode="replicate")
    oy, ox = torch.randint(0, 5, (2, n))
    x = torch.stack([x[i, :, oy[i]:oy[i] + SIZE, ox[i]:ox[i] + SIZE] for i in range(n)])
    # flip half of them
    flip = torch.rand(n) < 0.5
    x[flip] = x[flip].flip(2)
    # brightness and noise
    gain = torch.rand(n, 1, 1, 1) * 0.5 + 0.8
    shift = torch.rand(n, 1, 1, 1) * 60 - 20
    x = x * gain + shift + torch.randn_like(x) * 8
    return x.clamp(0, 255).to(torch.uint8)


class Net(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.c1 = nn.Conv2d(3, 12, 3, padding=1, bias=False)
        self.b1 = nn.BatchNorm2d(12, momentum=0.1)
        self.c2 = nn.Conv2d(12, 24, 3, padding=1, bias=False)
        self.b2 = nn.BatchNorm2d(24, momentum=0.1)
        self.c3 = nn.Conv2d(24, 48, 3, padding=1, bias=False)
        self.b3 = nn.BatchNorm2d(48, momentum=0.1)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(48 * 25, k)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.b1(self.c1(x))), 2)
        x = F.max_pool2d(F.relu(self.b2(self.c2(x))), 2)
        x = F.relu(self.b3(self.c3(x)))
        return self.fc(self.drop(x.flatten(1)))


@torch.no_grad()
def evaluate(net, x, y):
    net.eval()
    logits = torch.cat([net(to_input(b)) for b in x.split(250)])
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item(), logits.argmax(1)


net = Net(len(CLASSES))
opt = torch.optim.Adam(net.parameters(), lr=8e-4, weight_decay=1e-5)
ckpt = os.path.join(tempfile.mkdtemp(), "best.pt")
BATCH, MAX_EPOCHS, PATIENCE = 48, 18, 6
best, wait = float("inf"), 0
torch.save({"model": net.state_dict(), "epoch": 0, "val_acc": 0.0}, ckpt)

for epoch in range(1, MAX_EPOCHS + 1):
    net.train()
    order = torch.randperm(len(x_train))
    run_loss = run_hit = 0.0
    for idx in order.split(BATCH):
        xb, yb = to_input(augment(x_train[idx])), y_train[idx]
        logits = net(xb)
        loss = F.cross_entropy(logits, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        run_loss += loss.item() * len(idx)
        run_hit += (logits.argmax(1) == yb).sum().item()
    val_loss, val_acc, _ = evaluate(net, x_val, y_val)
    print(f"epoch {epoch:2d}  train loss {run_loss / len(x_train):.4f} acc {run_hit / len(x_train):.3f}"
          f"  val loss {val_loss:.4f} acc {val_acc:.3f}")
    if val_loss < best:
        best, wait = val_loss, 0
        torch.save({"model": net.state_dict(), "epoch": epoch, "val_acc": val_acc}, ckpt)
    else:
        wait += 1
        if wait >= PATIENCE:
            print(f"no improvement for {PATIENCE} epochs, stopping")
            break

state = torch.load(ckpt)
net.load_state_dict(state["model"])
test_loss, test_acc, pred = evaluate(net, x_test, y_test)
per_class = {c: round((pred[y_test == i] == i).float().mean().item(), 3) for i, c in enumerate(CLASSES)}
print(f"best epoch {state['epoch']} (val acc {state['val_acc']:.3f})")
print(f"test loss {test_loss:.4f}  test accuracy {test_acc:.3f}")
print("recall per class", per_class)
