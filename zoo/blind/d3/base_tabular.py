"""Customer churn from a table with categories, dict batches."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, recall_score, roc_auc_score
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

SEED = 17
torch.manual_seed(SEED)


def make_table(n=5000):
    g = np.random.default_rng(SEED)
    city_effect = g.normal(0, 0.45, 700)
    plan_effect = np.array([-0.7, 0.0, 0.3, 0.9])
    city = g.integers(0, 700, n)
    plan = g.integers(0, 4, n)
    device = g.integers(0, 3, n)
    spend = g.lognormal(3.0, 0.6, n)
    tenure = g.integers(1, 72, n).astype(float)
    gap = g.uniform(0, 60, n)
    z = (-3.6 + city_effect[city] + plan_effect[plan] + 0.09 * (gap - 25) - 0.025 * tenure
         + 0.5 * (device == 2) * (spend > 22) + 0.02 * spend)
    y = (g.random(n) < 1 / (1 + np.exp(-z))).astype(np.int64)
    gap[g.random(n) < 0.15] = -999.0
    return {"city": city, "plan": plan, "device": device,
            "num": np.stack([spend, tenure, gap], 1), "y": y}


def rate_by_city(fit_city, fit_y, use_city, prior, m=2.0):
    s = np.bincount(fit_city, weights=fit_y, minlength=700)
    c = np.bincount(fit_city, minlength=700)
    return ((s + m * prior) / (c + m))[use_city]


def prepare(t):
    num = t["num"].copy()
    num[num == -999.0] = np.nan
    tr, va = train_test_split(np.arange(len(t["y"])), test_size=0.25, random_state=1, stratify=t["y"])
    flag = np.isnan(num[:, 2:3]).astype(float)
    num = np.where(np.isnan(num), np.nanmedian(num[tr], axis=0), num)
    city, y = t["city"], t["y"]
    prior = y[tr].mean()
    enc = np.zeros(len(y))
    for a, b in KFold(5, shuffle=True, random_state=2).split(tr):
        enc[tr[b]] = rate_by_city(city[tr[a]], y[tr[a]], city[tr[b]], prior)
    enc[va] = rate_by_city(city[tr], y[tr], city[va], prior)
    num = np.concatenate([num, enc[:, None]], 1)
    num = StandardScaler().fit(num[tr]).transform(num)
    num = np.concatenate([num, flag], 1)
    pick = lambda idx: {"num": torch.tensor(num[idx], dtype=torch.float32),
                        "plan": torch.tensor(t["plan"][idx]), "device": torch.tensor(t["device"][idx]),
                        "y": torch.tensor(y[idx], dtype=torch.float32)}
    return pick(tr), pick(va)


class Rows(Dataset):
    def __init__(self, cols):
        self.cols = cols

    def __len__(self):
        return len(self.cols["y"])

    def __getitem__(self, i):
        return {k: v[i] for k, v in self.cols.items()}


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.plan, self.device = nn.Embedding(4, 3), nn.Embedding(3, 2)
        self.mlp = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, b):
        return self.mlp(torch.cat([b["num"], self.plan(b["plan"]), self.device(b["device"])], 1)).squeeze(1)


def scores(model, data):
    model.eval()
    with torch.no_grad():
        z = model(data)
    y, p = data["y"].numpy(), torch.sigmoid(z).numpy()
    return (roc_auc_score(y, p), average_precision_score(y, p),
            recall_score(y, p > 0.5, zero_division=0), float(((p > 0.5) == y).mean()))


train_cols, val_cols = prepare(make_table())
labels = train_cols["y"].long()
counts = torch.bincount(labels).float()
weights = 1.0 / counts[labels]
sampler = WeightedRandomSampler(weights, num_samples=len(labels), replacement=True)
loader = DataLoader(Rows(train_cols), batch_size=64, sampler=sampler)
net = ChurnNet()
optim = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
for ep in range(6):
    net.train()
    losses = []
    for b in loader:
        optim.zero_grad()
        loss = F.binary_cross_entropy_with_logits(net(b), b["y"])
        loss.backward()
        optim.step()
        losses.append(loss.item())
    ta = scores(net, train_cols)
    va = scores(net, val_cols)
    print("epoch %d loss %.4f  train AUC %.3f AP %.3f  val AUC %.3f AP %.3f recall %.3f acc %.3f" % (ep, np.mean(losses), *ta[:2], *va))
print("churn share %.3f; final val AUC %.4f AP %.4f recall %.3f acc %.3f" % (val_cols["y"].mean().item(), *va))
