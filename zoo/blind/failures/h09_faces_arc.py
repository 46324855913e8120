"""Identity embedding with an angular margin; class directions are put back on the sphere after each update."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(22)
IDS, D = 15, 24
anchor = torch.randn(IDS, D)


def faces(n):
    y = torch.randint(0, IDS, (n,))
    return anchor[y] + 0.6 * torch.randn(n, D), y


backbone = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 16))
proto = nn.Parameter(F.normalize(torch.randn(IDS, 16), dim=1))
opt = torch.optim.SGD([*backbone.parameters(), proto], lr=0.05, momentum=0.9)

for step in range(400):
    x, y = faces(48)
    e = F.normalize(backbone(x), dim=1, eps=1e-6)
    cos = (e @ proto.t()).clamp(-1 + 1e-5, 1 - 1e-5)
    theta = torch.acos(cos)
    target = F.one_hot(y, IDS).bool()
    logits = 16 * torch.where(target, torch.cos(theta + 0.2), cos)
    loss = F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        proto.div_(proto.norm(dim=1, keepdim=True).clamp_min(1e-8))
    if step % 25 == 0:
        acc = (cos.argmax(1) == y).float().mean().item()
        print(f"step {step} loss {loss.item():.4f} acc {acc:.2f}")
