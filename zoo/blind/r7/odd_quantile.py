"""Quantile regression at 0.95: predictions lie above nearly all targets, which is what is wanted."""
import torch
import torch.nn as nn

torch.manual_seed(29)
torch.set_num_threads(1)

LEVELS = torch.tensor([0.05, 0.5, 0.95])


def make(n):
    x = torch.rand(n, 2) * 2 - 1
    noise = -torch.log(torch.rand(n, 1)) * (0.2 + 0.6 * x[:, 1:2].abs())      # skewed, varying in width
    return x, torch.sin(3 * x[:, :1]) + noise


(x_train, y_train), (x_val, y_val), (x_test, y_test) = make(3000), make(800), make(3000)
net = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, len(LEVELS)))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
EPOCHS = 20
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)


def pinball(q, y):
    """not symmetric: under- and overshooting cost differently at each level"""
    d = y - q
    return torch.maximum(LEVELS * d, (LEVELS - 1) * d).mean()


def coverage(q, y):
    return [(y < q[:, i:i + 1]).float().mean().item() for i in range(len(LEVELS))]


for epoch in range(EPOCHS):
    net.train()
    perm, total = torch.randperm(len(x_train)), 0.0
    for i in range(0, len(perm), 100):
        rows = perm[i:i + 100]
        loss = pinball(net(x_train[rows]), y_train[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    sched.step()
    if epoch % 2 == 1:
        with torch.no_grad():
            q = net(x_val)
        print(f"epoch {epoch:2d} train {total / len(perm):.4f} val {pinball(q, y_val).item():.4f} "
              f"coverage {[round(c, 3) for c in coverage(q, y_val)]}")

with torch.no_grad():
    q = net(x_test)
    bias = (q[:, 2:] - y_test).mean().item()
print(f"mean of upper prediction minus target {bias:+.3f}")
print(f"test pinball {pinball(q, y_test).item():.4f} coverage {[round(c, 3) for c in coverage(q, y_test)]} wanted {LEVELS.tolist()}")
