import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 20
CLASSES = ["square", "cross", "ring", "bar"]


def render(n):
    yy, xx = torch.meshgrid(torch.arange(SIDE).float(), torch.arange(SIDE).float(), indexing="ij")
    cls = torch.randint(0, 4, (n,))
    size = torch.rand(n) * 3.5 + 3
    center = torch.rand(n, 2) * 6 + 7
    imgs = torch.zeros(n, 1, SIDE, SIDE)
    for i in range(n):
        dx, dy, s = (xx - center[i, 0]).abs(), (yy - center[i, 1]).abs(), size[i]
        if cls[i] == 0:
            m = (dx < s) & (dy < s)
        elif cls[i] == 1:
            m = ((dx < 1.2) & (dy < s)) | ((dy < 1.2) & (dx < s))
        elif cls[i] == 2:
            rad = (dx ** 2 + dy ** 2).sqrt()
            m = (rad < s) & (rad > s - 1.8)
        else:
            m = (dx < s) & (dy < 1.5)
        imgs[i, 0] = m.float() * (0.5 + 0.5 * torch.rand(1)) + 0.25 * torch.randn(SIDE, SIDE)
    return imgs, cls, (2 * size) ** 2      # area of the bounding box in pixels


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(24 * 25, 64), nn.ReLU())
        self.classify = nn.Linear(64, len(CLASSES))
        self.area = nn.Linear(64, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.classify(h), self.area(h).squeeze(1)


def validate(model, loader):
    model.eval()
    right = n = 0
    preds, truths = [], []
    with torch.no_grad():
        for x, c, a in loader:
            logits, area = model(x)
            right += (logits.argmax(1) == c).sum().item()
            n += len(c)
            preds.append(area)
            truths.append(a)
    p, t = torch.cat(preds), torch.cat(truths)
    r2 = 1 - ((p - t) ** 2).mean() / t.var()
    return right / n, r2.item()


def main(epochs=8, lr=0.015):
    torch.manual_seed(42)
    imgs, cls, area = render(860)
    order = torch.randperm(len(imgs))
    imgs, cls, area = imgs[order], cls[order], area[order]
    area = (area - area[:700].mean()) / area[:700].std()
    train = DataLoader(TensorDataset(imgs[:700], cls[:700], area[:700]), batch_size=25, shuffle=True)
    val = DataLoader(TensorDataset(imgs[700:], cls[700:], area[700:]), batch_size=100)
    model = TwoHeads()
    ce, mse = nn.CrossEntropyLoss(), nn.MSELoss()
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for ep in range(epochs):
        model.train()
        s_cls = s_area = 0.0
        for x, c, a in train:
            opt.zero_grad()
            logits, pred = model(x)
            loss_cls = ce(logits, c)
            loss_area = mse(pred, a)
            loss_cls.backward(retain_graph=True)
            loss_area.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            s_cls += loss_cls.item()
            s_area += loss_area.item()
        acc, r2 = validate(model, val)
        print(f"epoch {ep}: class loss {s_cls / len(train):.3f}, area loss {s_area / len(train):.3f} | val acc {acc:.3f}, area R2 {r2:.3f}")


if __name__ == "__main__":
    main()
