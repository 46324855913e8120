"""Batch size one with accumulation over 16 samples and zero_grad only after the update."""
import torch
import torch.nn as nn

torch.manual_seed(23)
torch.set_num_threads(1)

ACCUM, EPOCHS = 16, 3


def make_set(n):
    """point clouds of different size: predict the log of their spread"""
    items = []
    for _ in range(n):
        size = int(torch.randint(5, 40, (1,)))
        scale = torch.rand(1) * 2 + 0.3
        items.append((scale * torch.randn(size, 2) + torch.randn(1, 2), scale.log()))
    return items


train, val, test = make_set(560), make_set(80), make_set(150)


class DeepSet(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.rho = nn.Sequential(nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, pts):
        # sets differ in size, so one set is one batch
        pts = pts - pts.mean(0, keepdim=True)
        return self.rho(self.phi(pts).mean(0))


net = DeepSet()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS * len(train) // ACCUM)


@torch.no_grad()
def mse(items):
    return sum((net(p) - t).pow(2).item() for p, t in items) / len(items)


print(f"start val mse {mse(val):.4f}")
opt.zero_grad()
for epoch in range(EPOCHS):
    total = 0.0
    for n, i in enumerate(torch.randperm(len(train)).tolist(), 1):
        pts, target = train[i]
        loss = (net(pts) - target).pow(2).mean()
        (loss / ACCUM).backward()
        total += loss.item()
        if n % ACCUM == 0:
            opt.step()
            sched.step()
            opt.zero_grad()
    print(f"epoch {epoch} train {total / len(train):.4f} val {mse(val):.4f}")

spread = torch.stack([t for _, t in test]).var().item()
print(f"test mse {mse(test):.4f} variance of the target {spread:.4f}")
