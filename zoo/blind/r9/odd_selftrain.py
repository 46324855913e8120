"""Self-training with a noisy student: 60 labelled digits, pseudo-labels for the rest, several rounds."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
order = rng.permutation(len(X))
X, y = torch.tensor(X[order] / 16.0, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(y[order])
lab = torch.cat([torch.where(y[:1200] == c)[0][:6] for c in range(10)])
pool = torch.tensor(np.setdiff1d(np.arange(1200), lab.numpy()))
Xte, yte = X[1200:], y[1200:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 4, 10)
        self.drop = nn.Dropout(0.25)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(self.drop(x.flatten(1)))


def jitter(x):
    s = int(torch.randint(-1, 2, (1,)))
    return torch.roll(x, s, 3) + 0.1 * torch.randn_like(x)


def fit(x, target, steps):
    net = Net()
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    for i in range(steps):
        j = torch.randint(0, len(x), (64,))
        loss = -(target[j] * F.log_softmax(net(jitter(x[j])), 1)).sum(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (i + 1) % 60 == 0:
            print(f"   step {i + 1:4d} loss {loss.item():.3f}")
    return net.eval()


x, t = X[lab], F.one_hot(y[lab], 10).float()
for r in range(5):
    print(f"round {r}: {len(x)} examples")
    net = fit(x, t, 240 if r == 0 else 420)
    with torch.no_grad():
        acc = (net(Xte).argmax(1) == yte).float().mean().item()
        p = F.softmax(net(X[pool]), 1)
    conf, guess = p.max(1)
    keep = conf > 0.75
    right = (guess[keep] == y[pool][keep]).float().mean().item()
    print(f"round {r}: test acc {acc:.3f}, pseudo-labels kept {keep.sum().item()}/{len(pool)} of which correct {right:.3f}")
    x, t = torch.cat([X[lab], X[pool][keep]]), torch.cat([F.one_hot(y[lab], 10).float(), p[keep]])
