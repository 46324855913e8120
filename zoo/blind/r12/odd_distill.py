"""Teacher, student and EMA copy in one script. Teacher is never updated in stage two; tiny validation set of 100."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
X = torch.randn(6100, 16)
rule = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 6))
with torch.no_grad():
    for p in rule.parameters():
        p.mul_(1.5)
    Y = rule(X).argmax(1)
lab, unl, val = slice(0, 3000), slice(0, 6000), slice(6000, 6100)
teacher = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 6))
student = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 6))
ema = copy.deepcopy(student).requires_grad_(False)


def acc(m):
    with torch.no_grad():
        return (m(X[val]).argmax(1) == Y[val]).float().mean().item()


opt = torch.optim.AdamW(teacher.parameters(), lr=2e-3, weight_decay=0.1)
for ep in range(8):
    for i in torch.randperm(3000).split(64):
        loss = F.cross_entropy(teacher(X[lab][i]), Y[lab][i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"teacher ep {ep} loss {loss.item():.3f} val acc {acc(teacher):.2f}")
teacher.requires_grad_(False)
T = 4.0
opt = torch.optim.AdamW(student.parameters(), lr=4e-3)
for ep in range(10):
    tot, n = 0.0, 0
    for i in torch.randperm(6000).split(64):
        t = F.log_softmax(teacher(X[unl][i]) / T, 1)
        s = F.log_softmax(student(X[unl][i]) / T, 1)
        loss = T * T * F.kl_div(s, t, reduction="batchmean", log_target=True)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for a, b in zip(ema.parameters(), student.parameters()):
                a.lerp_(b, 0.02)
        tot, n = tot + loss.item(), n + 1
    print(f"student ep {ep} kd {tot / n:.4f} val acc {acc(student):.2f} ema val acc {acc(ema):.2f}")
print(f"teacher {acc(teacher):.2f} student {acc(student):.2f} ema {acc(ema):.2f}")
