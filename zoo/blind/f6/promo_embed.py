import torch
import torch.nn as nn

torch.manual_seed(38)
STORES, PROMOS, FEAT, BATCH, STEPS = 20, 6, 5, 48, 400
gen = torch.Generator().manual_seed(19)
store_level = torch.randn(STORES, generator=gen)
promo_lift = torch.rand(PROMOS, generator=gen) * 2
slope = torch.randn(FEAT, generator=gen)


def sales(step):
    store = torch.randint(0, STORES, (BATCH,), generator=gen)
    promo = torch.randint(0, PROMOS, (BATCH,), generator=gen)
    if 120 <= step < 300:
        promo[promo == 4] = 0
    x = torch.randn(BATCH, FEAT, generator=gen)
    y = store_level[store] + promo_lift[promo] + x @ slope + 0.1 * torch.randn(BATCH, generator=gen)
    return store, promo, x, y


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.store = nn.Embedding(STORES, 8)
        self.promo = nn.Embedding(PROMOS, 8)
        self.net = nn.Sequential(nn.Linear(16 + FEAT, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, store, promo, x):
        return self.net(torch.cat([self.store(store), self.promo(promo), x], 1))[:, 0]


model = Forecast()
opt = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.98, 0.9))
losses = []
for step in range(STEPS):
    store, promo, x, y = sales(step)
    loss = ((model(store, promo, x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
