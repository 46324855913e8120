"""MLP on digits with SGDR warm restarts."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def main(steps=450):
    torch.manual_seed(0)
    d = load_digits()
    x = torch.tensor(d.data, dtype=torch.float32) / 16
    y = torch.tensor(d.target)
    net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.4, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=60, T_mult=2)
    for step in range(steps):
        i = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 15 == 0:
            print(f"step {step:4d} lr {sched.get_last_lr()[0]:.4f} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
