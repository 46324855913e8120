"""Five insect species with 60/25/10/4/1 % shares; balanced draws, balanced accuracy on the natural mix."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import balanced_accuracy_score
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

torch.manual_seed(19)
g = np.random.default_rng(19)
share = [0.60, 0.25, 0.10, 0.04, 0.01]
mean = g.normal(0, 0.8, (5, 16))


class Insects(Dataset):
    def __init__(self, n):
        self.y = g.choice(5, n, p=share)
        self.x = (mean[self.y] + g.normal(size=(n, 16))).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"wing": self.x[i], "species": self.y[i]}


train, val = Insects(5000), Insects(2000)
per_class = np.bincount(train.y, minlength=5)
sampler = WeightedRandomSampler(torch.tensor(1.0 / per_class[train.y]), num_samples=len(train), replacement=True)
loader = DataLoader(train, batch_size=100, sampler=sampler)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 5))
opt = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-3)
for epoch in range(5):
    net.train()
    tot = 0.0
    for b in loader:
        loss = nn.functional.cross_entropy(net(b["wing"]), b["species"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    net.eval()
    with torch.no_grad():
        o = net(torch.from_numpy(val.x))
    p = o.argmax(1).numpy()
    rec = [float((p[val.y == k] == k).mean()) for k in range(5)]
    print(f"epoch {epoch} train {tot / len(loader):.3f} val balanced acc {balanced_accuracy_score(val.y, p):.3f} acc {(p == val.y).mean():.3f} recalls", " ".join(f"{r:.2f}" for r in rec))
