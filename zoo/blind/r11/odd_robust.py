"""Adversarial training (PGD inside the loop). Training accuracy is measured on attacked inputs and is
therefore lower than clean test accuracy; robust test accuracy is the goal."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(0)
d = load_digits()
X, Y = torch.tensor(d.data / 16).float(), torch.tensor(d.target)
p = torch.randperm(len(X))
tr, te = p[:1350], p[1350:]
EPS = 0.12


def attack(net, x, y, steps=5):
    delta = (torch.rand_like(x) * 2 - 1) * EPS
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(net((x + delta).clamp(0, 1)), y)
        g, = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + EPS / 3 * g.sign()).clamp(-EPS, EPS)
    return (x + delta).clamp(0, 1).detach()


def fit(adversarial, epochs=25):
    net = nn.Sequential(nn.Linear(64, 160), nn.ReLU(), nn.Linear(160, 96), nn.ReLU(), nn.Linear(96, 10))
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    for epoch in range(epochs):
        hit = 0
        for i in tr[torch.randperm(len(tr))].split(50):
            x = attack(net, X[i], Y[i]) if adversarial else X[i]
            out = net(x)
            loss = F.cross_entropy(out, Y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
            hit += (out.argmax(1) == Y[i]).sum().item()
        if epoch % 6 == 0:
            print(f"  epoch {epoch}: loss {loss.item():.3f} train acc {hit / len(tr):.3f}")
    clean = (net(X[te]).argmax(1) == Y[te]).float().mean().item()
    adv = attack(net, X[te], Y[te], 20)
    return clean, (net(adv).argmax(1) == Y[te]).float().mean().item()


print("plain")
c0, r0 = fit(False)
print("adversarial")
c1, r1 = fit(True)
print(f"plain clean {c0:.3f} robust {r0:.3f} | adversarial clean {c1:.3f} robust {r1:.3f}")
