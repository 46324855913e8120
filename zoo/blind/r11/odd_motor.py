"""Machine monitoring: an autoencoder with tied weights sees normal vibration spectra only.

Reconstruction of faulty machines must be BAD, so the validation error on the mixed set is much larger
than the training error. Metric: ROC AUC.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score

torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)
freq = np.arange(80)


def spectrum(faulty):
    base = rng.uniform(8, 14)
    amp = rng.uniform(0.7, 1.3)
    s = sum(amp / h * np.exp(-0.5 * ((freq - base * h) / 1.5) ** 2) for h in (1, 2, 3, 4))
    s = s + 0.25 * np.exp(-freq / 25)
    if faulty:
        s = s + rng.uniform(0.25, 0.6) * np.exp(-0.5 * ((freq - base * rng.choice([1.5, 2.5, 3.5])) / 1.2) ** 2)
    return s + rng.normal(0, 0.05, 80)


normal = np.stack([spectrum(False) for _ in range(3000)])
mixed_y = (rng.random(1000) < 0.1).astype(int)
mixed = np.stack([spectrum(bool(f)) for f in mixed_y])
mu = normal.mean(0)
train = torch.tensor(normal - mu).float()
test = torch.tensor(mixed - mu).float()


class TiedAE(nn.Module):
    def __init__(self, dim=80, hid=48, code=4):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(hid, dim) / dim ** 0.5)
        self.w2 = nn.Parameter(torch.randn(code, hid) / hid ** 0.5)
        self.b1, self.b2 = nn.Parameter(torch.zeros(hid)), nn.Parameter(torch.zeros(code))
        self.c1, self.c2 = nn.Parameter(torch.zeros(hid)), nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        z = F.linear(torch.tanh(F.linear(x, self.w1, self.b1)), self.w2, self.b2)
        h = torch.tanh(F.linear(z, self.w2.T, self.c1))
        return F.linear(h, self.w1.T, self.c2)


net = TiedAE()
opt = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(60):
    for i in torch.randperm(3000).split(100):
        x = train[i]
        loss = ((net(x + 0.02 * torch.randn_like(x)) - x) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch == 45:
        opt.param_groups[0]["lr"] = 5e-4
    if epoch % 10 == 9:
        with torch.no_grad():
            err = ((net(test) - test) ** 2).mean(1)
        print(f"epoch {epoch + 1} train {loss.item():.4f} test mean {err.mean():.4f} "
              f"normal {err[mixed_y == 0].mean():.4f} faulty {err[mixed_y == 1].mean():.4f} auc {roc_auc_score(mixed_y, err):.3f}")
print(f"ROC AUC {roc_auc_score(mixed_y, err):.3f}")
