import torch
import torch.nn as nn

torch.manual_seed(16)
N, EPOCHS, BS = 1280, 8, 40


def friedman(n):
    x = torch.rand(n, 8)
    y = 10 * torch.sin(3.14159 * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, (y + torch.randn(n))[:, None]


x, y = friedman(N)
mean, std = x.mean(0), x.std(0)
x = (x - mean) / std
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.MSELoss()
xv, yv = friedman(256)
xv = (xv - mean) / std
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.12, total_steps=EPOCHS * N // BS, pct_start=0.6, div_factor=1000)

for epoch in range(EPOCHS):
    perm = torch.randperm(N)
    tot = 0.0
    for b in perm.split(BS):
        loss = criterion(model(x[b]), y[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        tot += loss.item() * len(b)
    model.eval()
    with torch.no_grad():
        val = criterion(model(xv), yv).item()
    model.train()
    print(f"epoch {epoch}: mse {tot / N:.4f}  val {val:.4f}  lr {sched.get_last_lr()[0]:.4f}")
