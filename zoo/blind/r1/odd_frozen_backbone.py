import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def blobs(n, classes):
    """little images: a bright blob in one of several places"""
    y = torch.randint(0, classes, (n,))
    x = torch.randn(n, 1, 10, 10) * 0.4
    for c in range(classes):
        r, col = divmod(c, 4)
        x[y == c, 0, r * 3:r * 3 + 3, col * 2:col * 2 + 3] += 1.2
    return x, y


backbone = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(400, 32), nn.ReLU())


def fit(head, params, x, y, steps, tag):
    opt = torch.optim.Adam(params, lr=2e-3)
    for s in range(steps):
        i = torch.randint(0, len(x), (48,))
        loss = F.cross_entropy(head(backbone(x[i])), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if s % 50 == 0 or s == steps - 1:
            print(tag, s, round(loss.item(), 4))


# stage 1: upstream task with 8 classes
x, y = blobs(1000, 8)
up = nn.Linear(32, 8)
fit(up, list(backbone.parameters()) + list(up.parameters()), x, y, 150, "pretrain")

# stage 2: keep the features, learn a new 4-class head (pairs of the old classes) only
for p in backbone.parameters():
    p.requires_grad_(False)
backbone.eval()
x, y = blobs(600, 8)
y = y // 2
down = nn.Linear(32, 4)
fit(down, down.parameters(), x, y, 200, "head")
xt, yt = blobs(400, 8)
with torch.no_grad():
    print("downstream accuracy", (down(backbone(xt)).argmax(1) == yt // 2).float().mean().item())
