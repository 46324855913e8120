# SGDR: the rate jumps back to 0.3 three times and the training loss rises each time; snapshots at the minima form an ensemble
import copy, torch, torch.nn as nn
from sklearn.datasets import make_moons
torch.manual_seed(0)
X, Y = make_moons(1600, noise=0.2, random_state=0); X = torch.tensor(X, dtype=torch.float32) * torch.tensor([1., 1.]); Y = torch.tensor(Y)
Xt, Yt, Xv, Yv = X[:1200], Y[:1200], X[1200:], Y[1200:]
net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
sch = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=12, T_mult=2, eta_min=1e-4)
snaps = []
for ep in range(84):
    s = 0.
    for b in torch.randperm(1200).split(60):
        loss = nn.functional.cross_entropy(net(Xt[b]), Yt[b]); opt.zero_grad(); loss.backward(); opt.step(); s += loss.item()
    sch.step()
    if ep + 1 in (12, 36, 84): snaps.append(copy.deepcopy(net))
    if (ep + 1) % 6 == 0:
        with torch.no_grad(): acc = (net(Xv).argmax(1) == Yv).float().mean()
        print(f"epoch {ep+1} next lr {sch.get_last_lr()[0]:.4f} train loss {s/20:.4f} val acc {acc:.4f}")
with torch.no_grad(): pr = sum(m(Xv).softmax(1) for m in snaps)
print("snapshot ensemble val acc", (pr.argmax(1) == Yv).float().mean().item())
