"""Lottery ticket: train, prune 90% of the weights by magnitude, rewind the rest to their initial values, train again under the mask.
Most weights are exactly zero and stay so. Goal: pruned accuracy within 2 points of the dense one."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(30)
d = load_digits()
X, Y = torch.tensor(d.data / 16, dtype=torch.float32), torch.tensor(d.target)
perm = torch.randperm(len(X))
tr, te = perm[:1300], perm[1300:]


def train(net, masks=None, epochs=15):
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(epochs):
        tot = 0.0
        for idx in tr[torch.randperm(len(tr))].split(50):
            loss = F.cross_entropy(net(X[idx]), Y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if masks:
                with torch.no_grad():
                    for n, p in net.named_parameters():
                        if n in masks:
                            p.mul_(masks[n])
            tot += loss.item() / 26
        if epoch % 7 == 0:
            print(f"  epoch {epoch} loss {tot:.4f}")
    with torch.no_grad():
        return (net(X[te]).argmax(1) == Y[te]).float().mean().item()


net = nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 100), nn.ReLU(), nn.Linear(100, 10))
init = copy.deepcopy(net.state_dict())
dense = train(net)
print(f"dense accuracy {dense:.3f}")
masks = {}
for n, p in net.named_parameters():
    if n.endswith("weight"):
        keep = 0.5 if p.shape[0] == 10 else 0.1
        masks[n] = (p.abs() >= p.abs().flatten().quantile(1 - keep)).float()
net.load_state_dict(init)
with torch.no_grad():
    for n, p in net.named_parameters():
        if n in masks:
            p.mul_(masks[n])
ticket = train(net, masks, epochs=22)
zero = sum((p == 0).sum().item() for p in net.parameters()) / sum(p.numel() for p in net.parameters())
print(f"ticket accuracy {ticket:.3f} with {100 * zero:.1f}% of the weights at zero")
