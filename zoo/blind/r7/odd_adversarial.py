"""Adversarial training (PGD): training accuracy is far below clean validation accuracy, on purpose."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
torch.set_num_threads(1)

DIM, EPS = 20, 0.4
weights = torch.randn(DIM)


def make(n):
    y = torch.randint(2, (n,))
    x = torch.randn(n, DIM)
    x[:, :4] += (2.0 * y[:, None].float() - 1) * 1.2          # robust directions
    x[:, 4:] = 0.3 * x[:, 4:] + (2.0 * y[:, None].float() - 1) * 0.12   # weak, easily attacked directions
    return x, y


(x_train, y_train), (x_val, y_val), (x_test, y_test) = make(2000), make(600), make(600)


def net_factory():
    return nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 2))


def attack(net, x, y, steps=4):
    delta = torch.zeros_like(x)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(net(x + delta), y)
        grad, = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + EPS / 2 * grad.sign()).clamp(-EPS, EPS)
    return (x + delta).detach()


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def fit(adversarial):
    net = net_factory()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(8):
        perm = torch.randperm(len(x_train))
        total = hits = 0.0
        for i in range(0, len(perm), 100):
            xb, yb = x_train[perm[i:i + 100]], y_train[perm[i:i + 100]]
            if adversarial:
                xb = attack(net, xb, yb)
            out = net(xb)
            loss = F.cross_entropy(out, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(yb)
            hits += (out.argmax(1) == yb).sum().item()
        robust = accuracy(net, attack(net, x_val, y_val), y_val)
        print(f"adv={adversarial} epoch {epoch} train {total / len(perm):.4f} train acc {hits / len(perm):.4f} "
              f"val clean {accuracy(net, x_val, y_val):.4f} val robust {robust:.4f}")
    return net


plain, robust = fit(False), fit(True)
for name, net in (("plain", plain), ("robust", robust)):
    print(f"{name}: test clean {accuracy(net, x_test, y_test):.4f} "
          f"test under attack {accuracy(net, attack(net, x_test, y_test, 8), y_test):.4f}")
