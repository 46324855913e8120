"""Pretrain, then gradual unfreezing: head alone at a large rate, later the last block, later everything."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)
W1 = torch.randn(20, 40) * 0.25
PROTO = torch.randn(16, 20)


def draw(n, noise=0.6):
    k = torch.randint(0, 16, (n,))
    return torch.sin((PROTO[k] + noise * torch.randn(n, 20)) @ W1) + 0.05 * torch.randn(n, 40), k


blocks = nn.ModuleList([
    nn.Sequential(nn.Linear(40, 64), nn.BatchNorm1d(64), nn.ReLU()),
    nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()),
    nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU())])
body = nn.Sequential(*blocks)
head = nn.Linear(64, 16)
x, k = draw(4000)
opt = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=3e-3)
for ep in range(4):
    for b in torch.randperm(4000).split(100):
        opt.zero_grad()
        loss = F.cross_entropy(head(body(x[b])), k[b])
        loss.backward()
        opt.step()
    print(f"pretraining {ep}: {loss.item():.3f}")

group = torch.arange(16) % 4
x, k = draw(200)
y = group[k]
xv, kv = draw(1000)
yv = group[kv]
head = nn.Linear(64, 4)
nn.init.zeros_(head.weight)
nn.init.zeros_(head.bias)
body.requires_grad_(False)
body.eval()                                   # running statistics stay those of pretraining
opt = torch.optim.SGD(head.parameters(), lr=0.3, momentum=0.9)
for ep in range(15):
    if ep == 5:
        blocks[2].requires_grad_(True)
        opt.add_param_group({"params": blocks[2].parameters(), "lr": 0.003})
    if ep == 10:
        blocks[1].requires_grad_(True)
        blocks[0].requires_grad_(True)
        opt.add_param_group({"params": [*blocks[1].parameters(), *blocks[0].parameters()], "lr": 0.0003})
    for b in torch.randperm(200).split(25):
        loss = F.cross_entropy(head(body(x[b])), y[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if ep % 2 == 0:
        with torch.no_grad():
            print(f"tuning {ep:2d}: loss {F.cross_entropy(head(body(x)), y).item():.3f} val acc {(head(body(xv)).argmax(1) == yv).float().mean():.3f} groups {len(opt.param_groups)}")
