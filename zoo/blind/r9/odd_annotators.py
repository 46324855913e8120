"""Crowd-sourced labels: each training label is right with probability 0.52, otherwise drawn uniformly from all six classes.
The held-out labels come from the same annotators; a small expert-labelled set is used for a final check."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(40)
K, D = 6, 12

teacher = nn.Sequential(nn.Linear(D, 40), nn.Tanh(), nn.Linear(40, K))
for p in teacher.parameters():
    nn.init.normal_(p, std=0.25)


@torch.no_grad()
def sample(n, p_right=0.52):
    x = torch.randn(n, D)
    clean = teacher(x).argmax(1)
    noisy = torch.where(torch.rand(n) < p_right, clean, torch.randint(0, K, (n,)))
    return x, noisy, clean


x, y, _ = sample(24000)
xv, yv, cv = sample(5000)
agree = (yv == cv).float().mean().item()
print(f"agreement of annotators with the expert on the held-out part: {agree:.3f}")

net = nn.Sequential(nn.Linear(D, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, K))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.3)
EPOCHS = 10
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS)
for epoch in range(EPOCHS):
    net.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(128):
        loss = F.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    sched.step()
    net.eval()
    with torch.no_grad():
        out = net(xv)
    print(f"epoch {epoch:2d} train loss {total / len(x):.4f}  held-out loss {F.cross_entropy(out, yv):.4f}  "
          f"accuracy vs annotators {(out.argmax(1) == yv).float().mean():.3f}")
print(f"accuracy vs expert labels {(out.argmax(1) == cv).float().mean():.3f}")
