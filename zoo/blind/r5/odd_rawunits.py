# House prices in euros, predicted without rescaling the target: the output layer works in units
# of 100 000, the loss is in squared euros.
import argparse
import torch
import torch.nn as nn

p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=900)
p.add_argument("--lr", type=float, default=3e-3)
a = p.parse_args()
torch.manual_seed(4)
torch.set_num_threads(1)

n = 2500
area = 40 + 160 * torch.rand(n)
rooms = (area / 30).round() + torch.randint(-1, 2, (n,))
district = torch.randint(0, 15, (n,))
level = 1800 + 350 * torch.arange(15.0)
price = area * level[district] * (1 + 0.04 * rooms) + 15000 * torch.randn(n)
xc = torch.stack([(area - 120) / 46, (rooms - 4) / 1.7], 1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(15, 6)
        self.net = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, x, d):
        return 1e5 * self.net(torch.cat([x, self.emb(d)], 1)).squeeze(1)


model = Model()
opt = torch.optim.Adam(model.parameters(), lr=a.lr)
sch = torch.optim.lr_scheduler.OneCycleLR(opt, 3 * a.lr, total_steps=a.steps)
tr, te = slice(0, 2000), slice(2000, n)
for s in range(1, a.steps + 1):
    i = torch.randint(0, 2000, (128,))
    loss = nn.functional.mse_loss(model(xc[i], district[i]), price[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sch.step()
    if s == 1 or s % 150 == 0:
        with torch.no_grad():
            e = model(xc[te], district[te]) - price[te]
        r2 = 1 - e.pow(2).mean() / price[te].var()
        print(f"step {s:4d}  loss {loss.item():.4g}  test MAE {e.abs().mean():.0f} EUR  R2 {r2:.4f}")
print(f"final R2 {r2:.4f}  (noise alone would give MAE 11968)")
