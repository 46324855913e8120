import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)


def moons(n):
    y = torch.randint(0, 2, (n,))
    t = torch.rand(n) * 3.1416
    x = torch.stack([torch.where(y == 0, t.cos(), 1 - t.cos()), torch.where(y == 0, t.sin(), 0.5 - t.sin())], 1)
    return x + 0.08 * torch.randn(n, 2), y


student = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
xl, yl = moons(20)


def update_teacher(step):
    decay = 0.9 + 0.0012 * step          # follow fast in the beginning, slowly afterwards
    with torch.no_grad():
        for pt, ps in zip(teacher.parameters(), student.parameters()):
            pt.mul_(decay).add_(ps, alpha=1 - decay)


for step in range(330):
    xu, _ = moons(96)
    sup = F.cross_entropy(student(xl), yl)
    cons = F.mse_loss(student(xu + 0.05 * torch.randn_like(xu)), teacher(xu + 0.05 * torch.randn_like(xu)))
    loss = sup + min(1.0, step / 60) * cons
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_teacher(step)
    if step % 15 == 0:
        print(f"{step:4d} sup {sup.item():.4f} cons {cons.item():.4f}")
