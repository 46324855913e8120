# Multi-label tagging of short clips from 40 descriptors.
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

K, DIM = 12, 40
g = torch.Generator().manual_seed(0)
rs = np.random.RandomState(0)
torch.manual_seed(0)

centers = rs.randn(K, DIM)
popularity = np.linspace(0.45, 0.08, K)


def sample_clip():
    tags = [k for k in range(K) if rs.rand() < popularity[k]] or [int(rs.randint(K))]
    feats = centers[tags].sum(0) + 1.3 * rs.randn(DIM)
    return feats.astype("float32"), tags


class Clips(Dataset):
    def __init__(self, n, train):
        self.items = [sample_clip() for _ in range(n)]
        self.train = train

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        feats, tags = self.items[i]
        target = torch.zeros(K)
        target[tags] = 1.0
        return {"x": torch.from_numpy(feats), "tags": target}


train_ds, val_ds = Clips(1500, True), Clips(500, False)

freq = np.zeros(K)
for _, tags in train_ds.items:
    freq[tags] += 1
tag_weight = 1.0 / np.sqrt(freq)
clip_weight = np.array([tag_weight[tags].max() for _, tags in train_ds.items])
sampler = WeightedRandomSampler(torch.as_tensor(clip_weight), num_samples=len(train_ds), generator=g)

train_loader = DataLoader(train_ds, batch_size=50, sampler=sampler)
val_loader = DataLoader(val_ds, batch_size=125)

model = nn.Sequential(nn.Linear(DIM, 64), nn.GELU(), nn.Linear(64, K))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
crit = nn.BCEWithLogitsLoss()


def validate():
    model.eval()
    scores, truth = [], []
    with torch.no_grad():
        for batch in val_loader:
            scores.append(model(batch["x"]))
            truth.append(batch["tags"])
    scores, truth = torch.cat(scores), torch.cat(truth)
    prob = torch.sigmoid(scores)
    pred = (prob > 0.5).float()
    tp = (pred * truth).sum()
    precision = (tp / pred.sum().clamp(min=1)).item()
    recall = (tp / truth.sum()).item()
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return crit(scores, truth).item(), precision, recall, f1


for epoch in range(10):
    model.train()
    running = []
    for batch in train_loader:
        opt.zero_grad()
        loss = crit(model(batch["x"]), batch["tags"])
        loss.backward()
        opt.step()
        running.append(loss.item())
    vloss, precision, recall, f1 = validate()
    print(f"epoch {epoch}: bce {np.mean(running):.4f} val {vloss:.4f} P {precision:.3f} R {recall:.3f} F1 {f1:.3f}")
