import numpy as np
import torch
import torch.nn as nn

np.random.seed(6)
torch.manual_seed(6)


def signatures(n_people, per_person, length=24):
    base = np.cumsum(np.random.randn(n_people, length), axis=1) * 0.6
    x = base[:, None] + 0.35 * np.random.randn(n_people, per_person, length) + np.random.randn(n_people, per_person, 1) * 1.5
    return x.astype(np.float32)


people = signatures(50, 8)
train_p, test_p = people[:40], people[40:]


def make_pairs(pool, n):
    a, b, same = [], [], []
    for k in range(n):
        p = np.random.randint(len(pool))
        i = np.random.randint(8)
        if k % 2 == 0:
            q, j = p, np.random.randint(8)
        else:
            q = (p + np.random.randint(1, len(pool))) % len(pool)
            j = np.random.randint(8)
        a.append(pool[p, i])
        b.append(pool[q, j])
        same.append(float(p == q))
    return torch.tensor(np.array(a)), torch.tensor(np.array(b)), torch.tensor(same)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv1d(1, 12, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(12, 16, 3, padding=1),
                                   nn.ReLU(), nn.Flatten(), nn.Linear(16 * 12, 16))

    def once(self, x):
        return self.trunk(x.unsqueeze(1))

    def forward(self, a, b):
        d2 = (self.once(a) - self.once(b)).pow(2).sum(1)
        return torch.sqrt(d2 + 1e-6)


def contrastive(d, same, margin=2.0):
    return (same * d.pow(2) + (1 - same) * torch.clamp(margin - d, min=0).pow(2)).mean()


net = Siamese()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
val = make_pairs(test_p, 400)
for epoch in range(7):
    a, b, same = make_pairs(train_p, 1600)
    losses = []
    for k in range(0, 1600, 64):
        s = slice(k, k + 64)
        loss = contrastive(net(a[s], b[s]), same[s])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    with torch.no_grad():
        d = net(val[0], val[1])
        vl = contrastive(d, val[2]).item()
        gap = d[val[2] == 0].mean() - d[val[2] == 1].mean()
        acc = ((d < 1.0).float() == val[2]).float().mean()
    print("epoch %d | train %.4f | val %.4f | distance gap %.3f | verification acc %.3f" % (epoch, np.mean(losses), vl, gap, acc))
