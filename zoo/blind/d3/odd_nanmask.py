"""Five lab values per patient, 60 % not measured (NaN); loss over the measured ones only."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(41)
g = np.random.default_rng(41)
B = g.normal(size=(14, 5))


class Patients(Dataset):
    def __init__(self, n):
        x = g.normal(size=(n, 14))
        t = np.tanh(x @ B * 0.5) * 2 + 0.2 * g.normal(size=(n, 5))
        t[g.random((n, 5)) < 0.6] = np.nan
        self.rows = [{"x": torch.tensor(a, dtype=torch.float32), "t": torch.tensor(b, dtype=torch.float32)} for a, b in zip(x, t)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def masked_mse(p, t):
    m = ~torch.isnan(t)
    return ((p - torch.where(m, t, torch.zeros_like(t))) ** 2 * m).sum(), m.sum()


train, val = DataLoader(Patients(3000), 50, shuffle=True), DataLoader(Patients(600), 200)
net = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for ep in range(12):
    a = b = 0.0
    for batch in train:
        s, m = masked_mse(net(batch["x"]), batch["t"])
        opt.zero_grad()
        (s / m).backward()
        opt.step()
        a, b = a + s.item(), b + m.item()
    with torch.no_grad():
        va = [masked_mse(net(q["x"]), q["t"]) for q in val]
    print(f"epoch {ep} train mse {a / b:.4f} val mse {(sum(v[0] for v in va) / sum(v[1] for v in va)).item():.4f} measured {int(b)}")
