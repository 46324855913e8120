# 1.5 % positives: balanced sampler for training, natural prior in validation, prior-corrected logits, AP/AUC as metrics
import math, numpy as np, torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from sklearn.metrics import average_precision_score, roc_auc_score
torch.manual_seed(0); r = np.random.default_rng(0)
def make(n):
    y = (r.random(n) < 0.015).astype(np.float32); x = r.normal(size=(n, 12)).astype(np.float32)
    x[:, 0] += 2.2 * y; x[:, 1] -= 1.8 * y; x[:, 2] = np.where(y == 1, np.abs(x[:, 2]) + 1, x[:, 2]); return torch.tensor(x), torch.tensor(y)
(Xt, Yt), (Xv, Yv) = make(12000), make(8000)
w = torch.where(Yt == 1, 0.5 / Yt.mean(), 0.5 / (1 - Yt.mean()))
dl = DataLoader(TensorDataset(Xt, Yt), 128, sampler=WeightedRandomSampler(w.double(), 6000))
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(.2), nn.Linear(32, 1)); opt = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=1e-2)
prior = math.log(Yt.mean() / (1 - Yt.mean()))
for ep in range(10):
    net.train(); s = 0
    for x, y in dl:
        loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), y); opt.zero_grad(); loss.backward(); opt.step(); s += loss.item()
    net.eval()
    with torch.no_grad(): z = net(Xv).squeeze(1) + prior
    bce = nn.functional.binary_cross_entropy_with_logits(z, Yv).item()
    print(f"epoch {ep} balanced train loss {s/len(dl):.4f} val logloss {bce:.4f} AUC {roc_auc_score(Yv, z):.4f} AP {average_precision_score(Yv, z):.4f} mean p {z.sigmoid().mean():.4f} base rate {Yv.mean():.4f}")
