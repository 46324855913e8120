"""PGD adversarial training on digits; clean and robust accuracy."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(9)
X, y = load_digits(return_X_y=True)
perm = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
X = torch.tensor(X / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)[perm]
y = torch.tensor(y)[perm]
Xtr, ytr, Xte, yte = X[:1300], y[:1300], X[1300:], y[1300:]
EPS, ALPHA, K, EPOCHS = 0.18, 0.06, 5, 14

net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
                    nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 10))


def pgd(x, t, steps):
    net.eval()
    adv = (x + torch.empty_like(x).uniform_(-EPS, EPS)).clamp(0, 1)
    for _ in range(steps):
        adv.requires_grad_(True)
        g, = torch.autograd.grad(F.cross_entropy(net(adv), t), adv)
        adv = adv.detach() + ALPHA * g.sign()
        adv = torch.min(torch.max(adv, x - EPS), x + EPS).clamp(0, 1)
    return adv.detach()


def test():
    adv = pgd(Xte, yte, 15)
    net.eval()
    with torch.no_grad():
        return [(net(v).argmax(1) == yte).float().mean().item() for v in (Xte, adv)] + [F.cross_entropy(net(Xte), yte).item()]


opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, [9, 12], 0.2)
for epoch in range(EPOCHS):
    tot, right = 0.0, 0
    for idx in torch.randperm(len(Xtr)).split(65):
        adv = pgd(Xtr[idx], ytr[idx], K)
        net.train()
        out = net(adv)
        loss = F.cross_entropy(out, ytr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(idx)
        right += (out.argmax(1) == ytr[idx]).sum().item()
    sched.step()
    clean, robust, vl = test()
    print(f"epoch {epoch + 1:2d} train loss {tot / len(Xtr):.3f} train acc (attacked) {right / len(Xtr):.3f} "
          f"| test loss {vl:.3f} clean acc {clean:.3f} robust acc {robust:.3f}")
