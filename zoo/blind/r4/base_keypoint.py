import torch
import torch.nn as nn
import torch.nn.functional as F

CANVAS, S, HM = 30, 24, 12          # rendered side, side after cropping, heatmap side


def draw(n, gen):
    """a bright head (disc) joined to a dimmer tail (square) by a thin line; returns images and (x, y) of both"""
    yy = torch.arange(CANVAS).view(1, CANVAS, 1).float()
    xx = torch.arange(CANVAS).view(1, 1, CANVAS).float()
    pts = torch.rand(n, 2, 2, generator=gen) * 13 + 8.5
    img = 0.15 * torch.randn(n, CANVAS, CANVAS, generator=gen)
    (hx, hy), (tx, ty) = pts[:, 0].t(), pts[:, 1].t()
    v = lambda t: t.view(-1, 1, 1)
    for a in torch.linspace(0, 1, 12):
        px, py = v(hx * (1 - a) + tx * a), v(hy * (1 - a) + ty * a)
        img = torch.maximum(img, 0.3 * torch.exp(-((xx - px) ** 2 + (yy - py) ** 2)))
    img = torch.maximum(img, torch.exp(-((xx - v(hx)) ** 2 + (yy - v(hy)) ** 2) / 4))
    box = ((xx - v(tx)).abs() < 2) & ((yy - v(ty)).abs() < 2)
    img = torch.where(box, torch.full_like(img, 0.7), img)
    return img.unsqueeze(1), pts


def heatmaps(pts, sigma=0.9):
    grid = torch.arange(HM).float()
    gy, gx = torch.meshgrid(grid, grid, indexing="ij")
    p = pts * HM / S
    d2 = (gx - p[..., 0, None, None]) ** 2 + (gy - p[..., 1, None, None]) ** 2
    return torch.exp(-d2 / (2 * sigma ** 2))


def decode(hm):
    idx = hm.flatten(2).argmax(-1)
    return torch.stack([idx % HM, idx // HM], -1).float() * S / HM


def crop(x, pts, dx, dy):
    x = x[:, :, dy:dy + S, dx:dx + S]
    pts = pts - torch.tensor([dx, dy]).float()
    return x, pts


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 5, stride=2, padding=2)
        self.c2 = nn.Conv2d(12, 24, 3, padding=1)
        self.c3 = nn.Conv2d(24, 8, 3, padding=1)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return self.head(x)


torch.manual_seed(1)
gen = torch.Generator().manual_seed(5)
train_x, train_p = draw(800, gen)
val_x, val_p = crop(*draw(200, gen), 3, 3)
net = PoseNet()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)

for epoch in range(8):
    net.train()
    running, n = 0.0, 0
    for idx in torch.randperm(len(train_x)).split(40):
        dx, dy = torch.randint(0, 7, (2,)).tolist()
        x, p = crop(train_x[idx], train_p[idx], dx, dy)
        loss = 10 * F.mse_loss(net(x), heatmaps(p))
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item() * len(idx)
        n += len(idx)
    net.eval()
    with torch.no_grad():
        err = (decode(net(val_x)) - val_p).norm(dim=-1)
    print(f"epoch {epoch} loss {running / n:.4f} | val error {err.mean():.2f} px, PCK@3 {(err < 3).float().mean():.3f}")
