"""Two regressions and one classification with learned uncertainty weights: the total loss becomes negative."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(7)
rng = np.random.default_rng(7)
n, dim = 6000, 16
x = rng.normal(size=(n, dim))
h = np.tanh(x @ rng.normal(size=(dim, 6)) / 2)
fine = h @ rng.normal(size=6) + 0.02 * rng.normal(size=n)
coarse = 40 * (h @ rng.normal(size=6)) + 30 * rng.normal(size=n)
label = (h @ rng.normal(size=(6, 3)) + 0.3 * rng.normal(size=(n, 3))).argmax(1)
x, fine, coarse = (torch.tensor(v, dtype=torch.float32) for v in (x, fine, coarse))
label = torch.tensor(label)
tr, te = slice(0, 4800), slice(4800, n)


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU())
        self.fine, self.coarse, self.cls = nn.Linear(96, 1), nn.Linear(96, 1), nn.Linear(96, 3)
        self.log_var = nn.Parameter(torch.tensor([0.0, 6.0, 0.0]))

    def forward(self, x):
        z = self.body(x)
        return self.fine(z).squeeze(1), 40 * self.coarse(z).squeeze(1), self.cls(z)


model = MultiTask()
opt = torch.optim.Adam([{"params": [p for k, p in model.named_parameters() if k != "log_var"]},
                        {"params": [model.log_var], "lr": 1e-2}], lr=2e-3)
epochs = 40
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)


def losses(idx):
    a, b, c = model(x[idx])
    return torch.stack([F.mse_loss(a, fine[idx]), F.mse_loss(b, coarse[idx]), F.cross_entropy(c, label[idx])])


half = torch.tensor([0.5, 0.5, 1.0])
for e in range(1, epochs + 1):
    total = 0.0
    for idx in torch.randperm(4800).split(80):
        parts = losses(idx)
        loss = (half * parts * (-model.log_var).exp() + 0.5 * model.log_var).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 60
    sched.step()
    if e % 5 == 0:
        with torch.no_grad():
            t = losses(torch.arange(4800, n))
            acc = (model(x[te])[2].argmax(1) == label[te]).float().mean().item()
        sd = (0.5 * model.log_var).exp().tolist()
        print(f"epoch {e:3d}  weighted loss {total:+.3f}  test rmse fine {t[0].sqrt():.3f} coarse {t[1].sqrt():.1f}  "
              f"acc {acc:.3f}  learned scales {sd[0]:.3f} {sd[1]:.1f} {sd[2]:.2f}")
r2 = 1 - t[:2] / torch.stack([fine[te].var(), coarse[te].var()])
ceiling = 1 - 30 ** 2 / coarse.var().item()
print(f"test R2 fine {r2[0]:.3f}  coarse {r2[1]:.3f} (ceiling {ceiling:.3f})  class accuracy {acc:.3f}")
