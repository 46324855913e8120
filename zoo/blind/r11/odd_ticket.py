# Lottery ticket: train, prune the smallest 40 % of what is left, rewind to the initial weights, repeat.
# Accuracy falls back to chance after every rewind, that is the procedure.
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(0)
d = load_digits()
X, Y = torch.tensor(d.data / 16).float(), torch.tensor(d.target)
p = torch.randperm(len(X))
tr, te = p[:1300], p[1300:]

net = nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 100), nn.ReLU(), nn.Linear(100, 10))
init = copy.deepcopy(net.state_dict())
layers = [m for m in net if isinstance(m, nn.Linear)]
masks = [torch.ones_like(m.weight) for m in layers]


def apply_masks():
    with torch.no_grad():
        for m, k in zip(layers, masks):
            m.weight.mul_(k)


def accuracy():
    with torch.no_grad():
        return (net(X[te]).argmax(1) == Y[te]).float().mean().item()


for rnd in range(6):
    net.load_state_dict(init)
    apply_masks()
    left = sum(k.sum().item() for k in masks) / sum(k.numel() for k in masks)
    print(f"round {rnd}: {100 * left:.1f} % of weights, accuracy after rewind {accuracy():.3f}")
    opt = torch.optim.Adam(net.parameters(), 1.5e-3)
    for epoch in range(14):
        tot = 0
        for i in tr[torch.randperm(len(tr))].split(50):
            loss = F.cross_entropy(net(X[i]), Y[i])
            opt.zero_grad()
            loss.backward()
            for m, k in zip(layers, masks):
                m.weight.grad.mul_(k)
            opt.step()
            apply_masks()
            tot += loss.item()
    print(f"   trained: loss {tot / 26:.4f} test acc {accuracy():.3f}")
    acc = accuracy()
    if rnd < 5:
        for j, (m, k) in enumerate(zip(layers, masks)):
            alive = m.weight[k.bool()].abs()
            masks[j] = k * (m.weight.abs() > alive.quantile(0.4)).float()
print(f"final sparse ticket ({100 * left:.1f} % of weights): test accuracy {acc:.3f}")
