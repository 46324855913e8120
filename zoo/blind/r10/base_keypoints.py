"""Heatmap regression of six body keypoints on small rendered figures.

Figures face the camera, so the figure's left hand is on the right of the image.
The network predicts one heatmap per keypoint at half resolution; the score is the
mean distance in image pixels and the share of points within three pixels.
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

POINTS = ["head", "hip", "left_hand", "right_hand", "left_foot", "right_foot"]
SWAP = [0, 1, 3, 2, 5, 4]           # channel order after mirroring an image
SIZE, STRIDE, SIGMA = 48, 2, 1.3


def stroke(canvas, a, b, width, value):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    d = b - a
    t = np.clip(((xx - a[0]) * d[0] + (yy - a[1]) * d[1]) / (d @ d + 1e-6), 0, 1)
    dist = np.hypot(xx - a[0] - t * d[0], yy - a[1] - t * d[1])
    np.maximum(canvas, value * np.clip(width - dist, 0, 1), out=canvas)


def render(rng):
    centre = np.array([rng.uniform(18, 30), rng.uniform(20, 26)])
    scale, lean = rng.uniform(0.75, 1.1), rng.normal(0, 0.2)
    up = np.array([np.sin(lean), -np.cos(lean)])
    side = np.array([-up[1], up[0]])                         # towards image right
    neck, hip = centre + 5 * scale * up, centre - 5 * scale * up
    head = neck + 4 * scale * up
    points = [head, hip]
    for sign in (1, -1):
        angle = rng.uniform(-0.5, 1.1)
        points.append(neck + scale * 11 * (sign * np.cos(angle) * side + np.sin(angle) * up))
    for sign in (1, -1):
        angle = rng.uniform(0.15, 0.75)
        points.append(hip + scale * 11 * (sign * np.sin(angle) * side - np.cos(angle) * up))
    canvas = np.zeros((SIZE, SIZE))
    tone = rng.uniform(0.5, 1.0, 6)
    stroke(canvas, neck, hip, 2.2, tone[0])
    stroke(canvas, head, head + 0.1, 3.2 * scale, tone[1])
    for p, start, v in zip(points[2:], (neck, neck, hip, hip), tone[2:]):
        stroke(canvas, start, p, 1.7, v)
    clutter = rng.uniform(0, SIZE, (4, 2))
    for p in clutter:
        stroke(canvas, p, p + rng.normal(0, 4, 2), 1.4, rng.uniform(0.2, 0.6))
    canvas += rng.normal(0, 0.08, canvas.shape) + rng.uniform(0, 0.2)
    return canvas.astype(np.float32), np.clip(np.stack(points), 0, SIZE - 1).astype(np.float32)


def make_figures(n, seed):
    rng = np.random.default_rng(seed)
    images, points = zip(*(render(rng) for _ in range(n)))
    return torch.from_numpy(np.stack(images)), torch.from_numpy(np.stack(points))


class FigureSet(Dataset):
    def __init__(self, images, points, mean, std, augment=False):
        self.images = (images - mean) / std
        self.points = points
        self.augment = augment
        self.grid = torch.arange(SIZE // STRIDE, dtype=torch.float32)

    def __len__(self):
        return len(self.images)

    def heatmaps(self, points):
        x = points[:, 0] / STRIDE
        y = points[:, 1] / STRIDE
        gx = torch.exp(-(self.grid[None] - x[:, None]) ** 2 / (2 * SIGMA ** 2))
        gy = torch.exp(-(self.grid[None] - y[:, None]) ** 2 / (2 * SIGMA ** 2))
        return gy[:, :, None] * gx[:, None, :]

    def __getitem__(self, i):
        image, points = self.images[i].clone(), self.points[i].clone()
        if self.augment:
            top, left = torch.randint(0, SIZE - 8, (2,)).tolist()
            image[top:top + 8, left:left + 8] = 0.0         # random erasing
            if torch.rand(()) < 0.5:
                image = image.flip(1)
                points[:, 0] = SIZE - 1 - points[:, 0]
                points = points[SWAP]
        return image[None], self.heatmaps(points), points


def conv(cin, cout, stride=1, dilation=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, padding=dilation, dilation=dilation), nn.ReLU())


class HeatmapNet(nn.Module):
    def __init__(self, n_points, width=16):
        super().__init__()
        self.stem = nn.Sequential(conv(1, width), conv(width, width, stride=2))
        self.down = nn.Sequential(conv(width, 2 * width, stride=2), conv(2 * width, 2 * width, dilation=2),
                                  conv(2 * width, 2 * width, dilation=3), conv(2 * width, 2 * width))
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.merge = conv(3 * width, 2 * width)
        self.head = nn.Conv2d(2 * width, n_points, 1)
        self.apply(self.init_weights)
        nn.init.normal_(self.head.weight, std=0.02)

    @staticmethod
    def init_weights(module):
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)

    def forward(self, x):
        fine = self.stem(x)
        coarse = self.up(self.down(fine))
        return self.head(self.merge(torch.cat([fine, coarse], dim=1)))


def decode(maps):
    """Peak of every heatmap, refined by the mass around it, in image pixels."""
    b, k, h, w = maps.shape
    peak = maps.flatten(2).argmax(2)
    py, px = peak // w, peak % w
    padded = nn.functional.pad(maps.clamp(min=0), (1, 1, 1, 1))
    window = nn.functional.unfold(padded.reshape(b * k, 1, h + 2, w + 2), 3)        # 9 x cells
    window = window.gather(2, peak.reshape(-1, 1, 1).expand(-1, 9, 1)).reshape(b, k, 3, 3)
    mass = window.sum((2, 3)).clamp(min=1e-6)
    step = torch.tensor([-1.0, 0.0, 1.0])
    dx = (window.sum(2) * step).sum(2) / mass
    dy = (window.sum(3) * step).sum(2) / mass
    return torch.stack([px + dx, py + dy], dim=2) * STRIDE


def heatmap_loss(output, target):
    return ((output - target) ** 2).sum((2, 3)).mean()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    losses, errors = [], []
    for image, maps, points in loader:
        output = model(image)
        losses.append(heatmap_loss(output, maps).item())
        errors.append((decode(output) - points).norm(dim=2))
    errors = torch.cat(errors)
    return float(np.mean(losses)), errors.mean(0), (errors < 3).float().mean().item()


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=9)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--lr", type=float, default=2e-3)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)

train_images, train_points = make_figures(560, seed=1)
mean, std = train_images.mean(), train_images.std()
train_set = FigureSet(train_images, train_points, mean, std, augment=True)
val_set = FigureSet(*make_figures(120, seed=2), mean, std)
test_set = FigureSet(*make_figures(160, seed=3), mean, std)
train_loader = DataLoader(train_set, args.batch, shuffle=True, drop_last=True)
val_loader, test_loader = DataLoader(val_set, 40), DataLoader(test_set, 40)

model = HeatmapNet(len(POINTS))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)

for epoch in range(1, args.epochs + 1):
    model.train()
    running = 0.0
    for image, maps, _ in train_loader:
        loss = heatmap_loss(model(image), maps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    scheduler.step()
    val_loss, val_error, val_pck = evaluate(model, val_loader)
    print(f"epoch {epoch:2d} train {running / len(train_loader):.3f} val {val_loss:.3f} "
          f"error {val_error.mean():.2f} px within 3 px {val_pck:.3f}")

test_loss, test_error, test_pck = evaluate(model, test_loader)
print("error by point: " + " ".join(f"{n} {e:.2f}" for n, e in zip(POINTS, test_error.tolist())))
print(f"test loss {test_loss:.3f} error {test_error.mean():.2f} px within 3 px {test_pck:.3f}")
