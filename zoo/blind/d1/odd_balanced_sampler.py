import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
sizes = [1500, 300, 60, 20]
centres = torch.randn(4, 10) * 2.0


def sample(counts):
    xs, ys = [], []
    for c, n in enumerate(counts):
        xs.append(centres[c] + torch.randn(n, 10))
        ys.append(torch.full((n,), c))
    return TensorDataset(torch.cat(xs), torch.cat(ys))


train, val = sample(sizes), sample([400, 80, 40, 40])
labels = train.tensors[1]
freq = torch.bincount(labels).float()
weights = (1.0 / freq)[labels]
sampler = WeightedRandomSampler(weights.double(), len(train), replacement=True, generator=torch.Generator().manual_seed(3))
loader = DataLoader(train, batch_size=40, sampler=sampler)
val_loader = DataLoader(val, batch_size=140)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    model.train()
    run = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item()
    model.eval()
    right, total = torch.zeros(4), torch.zeros(4)
    with torch.no_grad():
        for x, y in val_loader:
            p = model(x).argmax(1)
            for c in range(4):
                right[c] += ((p == c) & (y == c)).sum()
                total[c] += (y == c).sum()
    rec = right / total
    print(f"epoch {epoch} loss {run / len(loader):.3f} val recall per class {[round(r, 2) for r in rec.tolist()]} macro {rec.mean():.3f}")
