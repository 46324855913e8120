"""Metric learning with a triplet margin loss; layer-wise adaptive rates."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
K, D = 6, 20
centers = torch.randn(K, D) * 0.7


def draw(n):
    lab = torch.randint(0, K, (n,))
    other = (lab + torch.randint(1, K, (n,))) % K
    noise = lambda: 0.7 * torch.randn(n, D)
    return centers[lab] + noise(), centers[lab] + noise(), centers[other] + noise()


net = nn.Sequential(nn.Linear(D, 64), nn.ELU(), nn.Linear(64, 16))
momentum = {p: torch.zeros_like(p) for p in net.parameters()}


@torch.no_grad()
def lars_update(lr, eta=0.02, beta=0.8):
    for p in net.parameters():
        ratio = eta * p.norm() / p.grad.norm()
        momentum[p].mul_(beta).add_(ratio * p.grad)
        p.sub_(lr * momentum[p])


for step in range(400):
    a, p, n = draw(48)
    ea, ep, en = net(a), net(p), net(n)
    d_pos = F.pairwise_distance(ea, ep)
    d_neg = F.pairwise_distance(ea, en)
    loss = F.relu(d_pos - d_neg + 1.0).mean()
    net.zero_grad()
    loss.backward()
    lars_update(0.08)
    if step % 10 == 0:
        print(f"step {step:3d} triplet {loss.item():.5f} pos {d_pos.mean().item():.3f} neg {d_neg.mean().item():.3f}")
