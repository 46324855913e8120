import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Scenes(Dataset):
    """Each scene is a feature grid and two boxes (cx, cy, w, h) in pixels."""

    def __init__(self, n=2400):
        g = torch.Generator().manual_seed(0)
        self.boxes = torch.rand(n, 2, 4, generator=g) * torch.tensor([64.0, 64.0, 24.0, 24.0])
        self.boxes[:, :, 2:] += 4
        self.boxes[1207, 1, 2] = 0.0
        proj = torch.randn(8, 30, generator=g)
        self.feats = (self.boxes.flatten(1) / 32 - 1) @ proj + 0.05 * torch.randn(n, 30, generator=g)
        self.cls = torch.randint(0, 3, (n, 2), generator=g)
        self.feats[:, :2] += 2 * self.cls

    def __len__(self):
        return len(self.feats)

    def __getitem__(self, i):
        return {"feat": self.feats[i], "boxes": self.boxes[i], "cls": self.cls[i]}


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.reg = nn.Linear(64, 8)
        self.cls = nn.Linear(64, 6)

    def forward(self, f):
        h = self.body(f)
        return self.reg(h).view(-1, 2, 4), self.cls(h).view(-1, 2, 3)


def encode(boxes, anchor=16.0):
    shift = (boxes[..., :2] - 32) / anchor
    wh = boxes[..., 2:]
    size = torch.log(wh / anchor)
    return torch.cat([shift, size], -1)


class Criterion(nn.Module):
    def forward(self, reg, cls, batch):
        box = nn.functional.mse_loss(reg, encode(batch["boxes"]))
        lab = nn.functional.cross_entropy(cls.flatten(0, 1), batch["cls"].flatten())
        return box + 0.5 * lab, box, lab


def train():
    torch.manual_seed(1)
    loader = DataLoader(Scenes(), batch_size=16)
    head, crit = Head(), Criterion()
    opt = torch.optim.SGD(head.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    for it, batch in enumerate(loader):
        reg, cls = head(batch["feat"])
        loss, box, lab = crit(reg, cls, batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 15 == 0:
            print(f"iter {it} box {box.item():.4f} cls {lab.item():.4f}")


train()
