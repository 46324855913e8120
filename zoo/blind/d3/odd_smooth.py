"""Label smoothing 0.2 in training, plain cross entropy in validation."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)
proto = torch.randn(6, 1, 10, 10)


def make(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 6, (n,), generator=gen)
    return TensorDataset(proto[y] + 1.3 * torch.randn(n, 1, 10, 10, generator=gen), y)


train, val = DataLoader(make(1920, 1), 64, shuffle=True), DataLoader(make(500, 2), 128)
net = nn.Sequential(nn.Conv2d(1, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(192, 6))
soft, plain = nn.CrossEntropyLoss(label_smoothing=0.2), nn.CrossEntropyLoss(reduction="sum")
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 6e-3, total_steps=30 * 6)
for ep in range(6):
    net.train()
    t = 0.0
    for x, y in train:
        opt.zero_grad()
        l = soft(net(x), y)
        l.backward()
        opt.step()
        sched.step()
        t += l.item() * len(y)
    net.eval()
    with torch.no_grad():
        vs = [(plain(net(x), y).item(), (net(x).argmax(1) == y).sum().item(), len(y)) for x, y in val]
    n = sum(v[2] for v in vs)
    print(f"epoch {ep}: train (smoothed) {t / 1920:.4f}  val (plain) {sum(v[0] for v in vs) / n:.4f}  val acc {sum(v[1] for v in vs) / n:.3f}")
