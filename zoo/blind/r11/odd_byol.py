"""Self-supervised pretraining without negatives (online net, slowly moving target net, stop-gradient),
judged by a linear probe."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

torch.set_num_threads(1)
torch.manual_seed(0)
d = load_digits()
X = torch.tensor(d.images / 16.0).float()[:, None]
Y = d.target
perm = torch.randperm(len(X))
tr, te = perm[:1300], perm[1300:]


def augment(x):
    sx, sy = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, (sy, sx), (2, 3))
    x = x * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1)) + 0.1 * torch.randn_like(x)
    keep = (torch.rand(len(x), 1, 8, 8) > 0.1).float()
    return x * keep


def encoder():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
        nn.Linear(512, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 48))


online, pred = encoder(), nn.Sequential(nn.Linear(48, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 48))
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.AdamW([*online.parameters(), *pred.parameters()], 2e-3, weight_decay=1e-4)


def cos_loss(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=1).mean()


def features(idx):
    online.eval()
    with torch.no_grad():
        f = online[:-1](X[idx])
    online.train()
    return f.numpy()


def probe():
    clf = LogisticRegression(max_iter=500).fit(features(tr), Y[tr])
    return clf.score(features(te), Y[te])


print(f"probe on random features {probe():.3f}")
step = 0
for epoch in range(25):
    tot = 0
    chunks = tr[torch.randperm(len(tr))].split(130)
    for i in chunks:
        a, b = augment(X[i]), augment(X[i])
        with torch.no_grad():
            ta, tb = target(a), target(b)
        loss = 0.5 * (cos_loss(pred(online(a)), tb) + cos_loss(pred(online(b)), ta))
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for t, o in zip(target.parameters(), online.parameters()):
                t.lerp_(o, 0.02)
        tot += loss.item()
    if epoch % 6 == 0:
        print(f"epoch {epoch}: loss {tot / len(chunks):.3f}")
print(f"probe after pretraining: test accuracy {probe():.3f}")
