"""Small CNN on synthetic arrow pictograms (left / right / up / down)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(3)
rng = np.random.default_rng(3)


def draw(label):
    img = rng.integers(90, 150, size=(16, 16), dtype=np.uint8)
    cy, cx = rng.integers(6, 10, size=2)
    arrow = np.zeros((9, 9), dtype=bool)
    arrow[4, :] = True
    for k in range(1, 4):
        arrow[4 - k, 8 - k] = True
        arrow[4 + k, 8 - k] = True
    if label == 0:
        arrow = arrow[:, ::-1]
    elif label == 2:
        arrow = np.rot90(arrow, 1)
    elif label == 3:
        arrow = np.rot90(arrow, -1)
    patch = img[cy - 4:cy + 5, cx - 4:cx + 5]
    patch[arrow[:patch.shape[0], :patch.shape[1]]] = rng.integers(150, 215)
    return img


class Arrows(Dataset):
    def __init__(self, n, train):
        self.y = rng.integers(0, 4, size=n)
        self.x = np.stack([draw(c) for c in self.y])
        self.train = train

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.x[i]
        if self.train:
            img = np.roll(img, rng.integers(-1, 2), axis=rng.integers(0, 2))
        x = torch.from_numpy(img.astype(np.float32) - 128.0) / 64.0
        return x.unsqueeze(0), int(self.y[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 3, padding=1)
        self.c2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc1 = nn.Linear(24 * 16, 48)
        self.fc2 = nn.Linear(48, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def main():
    train = DataLoader(Arrows(1000, True), batch_size=40, shuffle=True)
    test = DataLoader(Arrows(300, False), batch_size=100)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=3, gamma=0.3)
    for epoch in range(6):
        net.train()
        total = 0.0
        for x, y in train:
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        sched.step()
        net.eval()
        hit, vl = 0, 0.0
        with torch.no_grad():
            for x, y in test:
                out = net(x)
                vl += F.cross_entropy(out, y, reduction="sum").item()
                hit += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch}: train {total / 1000:.4f}  test {vl / 300:.4f}  acc {hit / 300:.3f}")


if __name__ == "__main__":
    main()
