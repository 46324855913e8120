"""Linear probe: the backbone is pretrained on another task, frozen on purpose and kept in eval mode."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
W = torch.randn(20, 12)
x = torch.randn(5000, 20)
lat = torch.tanh(x @ W * 0.4)
pre_y = lat @ torch.randn(12, 10)
probe_y = (lat @ torch.randn(12, 5)).argmax(1)

backbone = nn.Sequential(nn.Linear(20, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64), nn.BatchNorm1d(64), nn.ReLU())
pre_head = nn.Linear(64, 10)
opt = torch.optim.Adam([*backbone.parameters(), *pre_head.parameters()], lr=3e-3)
print("stage 1: regression pretraining")
for ep in range(12):
    backbone.train()
    perm = torch.randperm(4000)
    for i in range(0, 4000, 100):
        idx = perm[i:i + 100]
        loss = F.mse_loss(pre_head(backbone(x[idx])), pre_y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"  ep {ep} loss {loss.item():.3f}")

for p in backbone.parameters():
    p.requires_grad_(False)
backbone.eval()
probe = nn.Linear(64, 5)
opt = torch.optim.SGD(probe.parameters(), lr=0.05, momentum=0.9)
print("stage 2: linear probe on frozen features")
for ep in range(12):
    perm = torch.randperm(4000)
    for i in range(0, 4000, 100):
        idx = perm[i:i + 100]
        loss = F.cross_entropy(probe(backbone(x[idx])), probe_y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        acc = (probe(backbone(x[4000:])).argmax(1) == probe_y[4000:]).float().mean().item()
    print(f"  ep {ep} loss {loss.item():.3f} val acc {acc:.3f}")
print(f"final probe accuracy {acc:.3f} (chance 0.2)")
