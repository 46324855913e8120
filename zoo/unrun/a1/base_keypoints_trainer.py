"""Regression of facial keypoints (x, y in pixels) from 96x96 grey images with a Trainer class."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class TrainConfig:
    data: str = "faces/keypoints.npz"
    size: int = 96
    n_points: int = 5          # left eye, right eye, nose, left mouth, right mouth
    batch_size: int = 64
    epochs: int = 60
    lr: float = 1e-3
    max_angle: float = 15.0    # degrees
    ema_decay: float = 0.999
    seed: int = 3
    ckpt: str = "keypoints_best.pt"


FLIP_ORDER = [1, 0, 2, 4, 3]


class FaceDataset(Dataset):
    """images (N, 96, 96) in 0..255, points (N, 5, 2) as x, y in pixels, visible (N, 5) in {0, 1}."""

    def __init__(self, images, points, visible, cfg, augment):
        self.images, self.points, self.visible = images, points, visible
        self.cfg, self.augment = cfg, augment

    def __len__(self):
        return len(self.images)

    def rotate(self, img, pts):
        angle = np.deg2rad((torch.rand(1).item() * 2 - 1) * self.cfg.max_angle)
        c, s = np.cos(angle), np.sin(angle)
        centre = (self.cfg.size - 1) / 2
        ys, xs = np.mgrid[0:self.cfg.size, 0:self.cfg.size] - centre
        # inverse map: output pixel -> source pixel
        src_x = np.clip(np.rint(c * xs + s * ys + centre), 0, self.cfg.size - 1).astype(int)
        src_y = np.clip(np.rint(-s * xs + c * ys + centre), 0, self.cfg.size - 1).astype(int)
        rot = np.array([[c, -s], [s, c]])
        return img[src_y, src_x], (pts - centre) @ rot.T + centre

    def __getitem__(self, i):
        img = self.images[i].astype(np.float32) / 255.0
        pts = self.points[i].astype(np.float32).copy()
        vis = self.visible[i].astype(np.float32)
        if self.augment:
            if torch.rand(1).item() < 0.5:
                img = img[:, ::-1]
                pts[:, 0] = self.cfg.size - 1 - pts[:, 0]
                pts, vis = pts[FLIP_ORDER], vis[FLIP_ORDER]
            img, pts = self.rotate(img, pts)
        img = torch.from_numpy(np.ascontiguousarray(img)).unsqueeze(0)
        pts = torch.from_numpy(np.asarray(pts, dtype=np.float32)) / self.cfg.size
        return (img - 0.5) / 0.25, pts, torch.from_numpy(vis)


class KeypointNet(nn.Module):
    def __init__(self, n_points):
        super().__init__()
        layers, c = [], 1
        for width in (32, 64, 128, 256):
            layers += [nn.Conv2d(c, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
            c = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(256 * 6 * 6, 256), nn.ReLU(),
                                  nn.Dropout(0.3), nn.Linear(256, n_points * 2))
        self.n_points = n_points

    def forward(self, x):
        return self.head(self.features(x)).view(-1, self.n_points, 2)


def masked_smooth_l1(pred, target, vis):
    loss = nn.functional.smooth_l1_loss(pred, target, reduction="none", beta=0.05).sum(-1)
    return (loss * vis).sum() / vis.sum().clamp(min=1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = KeypointNet(cfg.n_points).to(self.device)
        self.ema = KeypointNet(cfg.n_points).to(self.device)
        self.ema.load_state_dict(self.model.state_dict())
        self.ema.eval()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=cfg.epochs)
        d = np.load(cfg.data)
        order = np.random.default_rng(cfg.seed).permutation(len(d["images"]))
        cut = int(0.85 * len(order))
        pick = lambda idx: (d["images"][idx], d["points"][idx], d["visible"][idx])
        self.train_dl = DataLoader(FaceDataset(*pick(order[:cut]), cfg, True), cfg.batch_size, shuffle=True)
        self.valid_dl = DataLoader(FaceDataset(*pick(order[cut:]), cfg, False), cfg.batch_size)

    @torch.no_grad()
    def update_ema(self):
        d = self.cfg.ema_decay
        for p_ema, p in zip(self.ema.parameters(), self.model.parameters()):
            p_ema.mul_(d).add_(p, alpha=1 - d)
        for b_ema, b in zip(self.ema.buffers(), self.model.buffers()):
            b_ema.copy_(b)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for img, pts, vis in self.train_dl:
            img, pts, vis = img.to(self.device), pts.to(self.device), vis.to(self.device)
            loss = masked_smooth_l1(self.model(img), pts, vis)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.update_ema()
            total += loss.item()
        self.sched.step()
        return total / len(self.train_dl)

    @torch.no_grad()
    def validate(self):
        """Mean distance in pixels over the visible points, with the EMA weights."""
        err, n = 0.0, 0.0
        for img, pts, vis in self.valid_dl:
            img, pts, vis = img.to(self.device), pts.to(self.device), vis.to(self.device)
            dist = (self.ema(img) - pts).norm(dim=-1) * self.cfg.size
            err += (dist * vis).sum().item()
            n += vis.sum().item()
        return err / n

    def fit(self):
        best = float("inf")
        for epoch in range(self.cfg.epochs):
            loss, err = self.train_epoch(), self.validate()
            print(f"{epoch:3d} loss {loss:.5f} error {err:.3f} px")
            if err < best:
                best = err
                torch.save({"ema": self.ema.state_dict(), "epoch": epoch, "error": err}, self.cfg.ckpt)


if __name__ == "__main__":
    Trainer(TrainConfig()).fit()
