import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

torch.manual_seed(9)
rs = np.random.RandomState(9)
N, V = 640, 200


def picture(kind):
    img = rs.normal(0, 0.3, (10, 10))
    r, c = rs.randint(1, 6, 2)
    if kind == 0:
        img[r:r + 4, c] += 1.5
    elif kind == 1:
        img[r, c:c + 4] += 1.5
    elif kind == 2:
        img[r:r + 3, c:c + 3] += 1.2
    else:
        for k in range(4):
            img[r + k, c + k] += 1.5
    return img


kinds = rs.randint(0, 4, N + V)
X = torch.tensor(np.array([picture(k) for k in kinds]), dtype=torch.float32).unsqueeze(1)
Y = torch.tensor(kinds)


class Unit(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv = nn.Conv2d(ch, ch, 3, padding=1)
        self.norm = nn.BatchNorm2d(ch)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(x)))


net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), Unit(16), nn.MaxPool2d(2), Unit(16), nn.Flatten(), nn.Linear(16 * 25, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.25, momentum=0.9, nesterov=True)
sched = CosineAnnealingWarmRestarts(opt, T_0=60, T_mult=1, eta_min=1e-4)
step = 0
while step < 240:
    for b in torch.randperm(N).split(32):
        net.train()
        x = X[b] + 0.1 * torch.randn(len(b), 1, 10, 10)
        loss = nn.functional.cross_entropy(net(x), Y[b])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        step += 1
        if step % 20 == 0:
            net.eval()
            with torch.no_grad():
                acc = (net(X[N:]).argmax(1) == Y[N:]).float().mean().item()
            print(f"step {step} lr {opt.param_groups[0]['lr']:.4f} loss {loss.item():.4f} val acc {acc:.3f}")
