import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)
N = 6000
y = (rng.random(N) < 0.03).astype("float32")
X = rng.normal(size=(N, 12)).astype("float32")
X[:, :4] += 2.6 * y[:, None]
Xt, yt = torch.from_numpy(X), torch.from_numpy(y)
train_ds = TensorDataset(Xt[:4500], yt[:4500])
valid_ds = TensorDataset(Xt[4500:], yt[4500:])
train_dl = DataLoader(train_ds, batch_size=128, shuffle=True)
valid_dl = DataLoader(valid_ds, batch_size=512)

net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
bce = nn.BCEWithLogitsLoss()
for epoch in range(6):
    net.train()
    for xb, yb in train_dl:
        loss = bce(net(xb)[:, 0], yb)
        opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    tp = fp = fn = 0
    vl = 0.0
    with torch.no_grad():
        for xb, yb in valid_dl:
            z = net(xb)[:, 0]
            vl += bce(z, yb).item() * len(yb)
            hit = z > 0
            tp += (hit & (yb == 1)).sum().item()
            fp += (hit & (yb == 0)).sum().item()
            fn += (~hit & (yb == 1)).sum().item()
    prec, rec = tp / max(tp + fp, 1), tp / max(tp + fn, 1)
    print(f"epoch {epoch}  batch loss {loss.item():.4f}  val loss {vl / len(valid_ds):.4f}  precision {prec:.3f}  recall {rec:.3f}  f1 {2 * prec * rec / max(prec + rec, 1e-9):.3f}")
