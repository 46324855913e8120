import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

CLASSES = 4


class ScanStream(IterableDataset):
    """Random points on a cube, a sphere, a cylinder or a plane; sparse scans are topped up to full size."""

    def __init__(self, n, points=32, seed=0):
        self.n, self.points, self.seed = n, points, seed

    def surface(self, label, m, g):
        u = torch.rand(m, 3, generator=g) * 2 - 1
        if label == 0:
            k = u.abs().argmax(1)
            u[torch.arange(m), k] = u[torch.arange(m), k].sign()
        elif label == 1:
            u = F.normalize(u, dim=1)
        elif label == 2:
            u[:, :2] = F.normalize(u[:, :2], dim=1)
        else:
            u[:, 2] = 0.1 * u[:, 2]
        return u

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for _ in range(self.n):
            label = int(torch.randint(CLASSES, (1,), generator=g))
            got = self.points
            if torch.rand(1, generator=g).item() < 0.0003:
                got = self.points - 3
            pts = self.surface(label, got, g) + 0.02 * torch.randn(got, 3, generator=g)
            if got < self.points:
                pts = torch.cat([pts, pts[: self.points - got]])
            yield pts, label


class ScanNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lift = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.mix = nn.Sequential(nn.Linear(width + 1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, CLASSES)

    def forward(self, pts):
        h = self.lift(pts)
        diff = h.unsqueeze(2) - h.unsqueeze(1)
        sq = (diff ** 2).sum(-1) + 1e6 * torch.eye(pts.size(1), device=pts.device)
        spacing = sq.min(2).values.sqrt()
        z = self.mix(torch.cat([h, spacing.unsqueeze(-1)], -1))
        return self.head(z.max(1).values)


def main():
    torch.manual_seed(3)
    device = torch.device("cuda")
    net = ScanNet().to(device)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    loader = DataLoader(ScanStream(16 * 350, seed=17), batch_size=16)
    for step, (pts, y) in enumerate(loader):
        pts, y = pts.to(device), y.to(device)
        out = net(pts)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} acc {(out.argmax(1) == y).float().mean().item():.2f}")


if __name__ == "__main__":
    main()
