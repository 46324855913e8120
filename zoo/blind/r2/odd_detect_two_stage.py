import torch
from torch import nn
import torch.nn.functional as F

# Stage 1 trains backbone + class head; stage 2 fits only the box head on detached features of the frozen, eval-mode backbone.
torch.manual_seed(19)
S = 20


def toy(n):
    x = 0.15 * torch.randn(n, 1, S, S)
    side = torch.randint(4, 9, (n,))
    pos = (torch.rand(n, 2) * (S - side[:, None]).float()).long()
    quadrant = ((pos[:, 0] + side / 2 > S / 2).long() * 2 + (pos[:, 1] + side / 2 > S / 2).long())
    for i in range(n):
        px, py, s = pos[i, 0], pos[i, 1], side[i]
        x[i, 0, py:py + s, px:px + s] += 1
    target = torch.cat([(pos + side[:, None] / 2) / S, side[:, None] / S], 1)
    return x, quadrant, target


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 3, 2, 1)
        self.bn = nn.BatchNorm2d(12)
        self.c2 = nn.Conv2d(12, 16, 3, 2, 1)

    def forward(self, x):
        return F.relu(self.c2(F.relu(self.bn(self.c1(x))))).flatten(1)


x, q, t = toy(500)
xv, qv, tv = toy(150)
bb, cls = Backbone(), nn.Linear(16 * 25, 4)
box = nn.Sequential(nn.Linear(16 * 25, 64), nn.ReLU(), nn.Linear(64, 3))
opt1 = torch.optim.Adam([*bb.parameters(), *cls.parameters()], lr=2e-3)
for ep in range(5):
    bb.train()
    for idx in torch.randperm(500).split(25):
        loss = F.cross_entropy(cls(bb(x[idx])), q[idx])
        opt1.zero_grad(); loss.backward(); opt1.step()
    bb.eval()
    with torch.no_grad():
        print(f"stage 1 epoch {ep} loss {loss.item():.3f} quadrant acc {(cls(bb(xv)).argmax(1) == qv).float().mean():.3f}")

bb.eval().requires_grad_(False)
opt2 = torch.optim.Adam(box.parameters(), lr=2e-3)
for ep in range(15):
    tot = 0.0
    for idx in torch.randperm(500).split(25):
        with torch.no_grad():
            feat = bb(x[idx])
        loss = F.mse_loss(box(feat), t[idx])
        opt2.zero_grad(); loss.backward(); opt2.step()
        tot += loss.item() / 20
    if ep % 3 == 2:
        with torch.no_grad():
            err = (box(bb(xv)) - tv).abs().mean().item() * S
        print(f"stage 2 epoch {ep} mse {tot:.5f} val error {err:.2f} px (always-mean {(tv - t.mean(0)).abs().mean() * S:.2f})")
