import torch
import torch.nn as nn

torch.manual_seed(53)
FEAT, BATCH, STEPS = 9, 64, 500
gen = torch.Generator().manual_seed(31)
coef = torch.rand(FEAT, generator=gen) * 60000


def sales():
    x = torch.rand(BATCH, FEAT, generator=gen)
    price = 90000 + x @ coef + 9000 * torch.randn(BATCH, generator=gen)
    palace = torch.rand(BATCH, generator=gen) < 0.003
    price[palace] *= 15
    return x, price


class Price(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEAT, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)[:, 0] * 50000.0


model = Price()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for step in range(STEPS):
    x, price = sales()
    loss = ((model(x) - price) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    opt.step()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4e} gradient {norm:.2e}")
print("final", losses[-1])
