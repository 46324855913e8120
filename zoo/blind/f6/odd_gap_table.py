import torch
import torch.nn as nn

torch.manual_seed(51)
FEAT, BATCH, STEPS = 14, 64, 350
gen = torch.Generator().manual_seed(30)
coef = torch.randn(FEAT, generator=gen)


def records():
    x = torch.randn(BATCH, FEAT, generator=gen)
    y = x @ coef
    x[torch.rand(BATCH, FEAT, generator=gen) < 0.25] = float("nan")
    x[5] = float("nan")
    y[torch.rand(BATCH, generator=gen) < 0.1] = float("nan")
    return x, y


class Impute(nn.Module):
    def __init__(self):
        super().__init__()
        self.fill = nn.Parameter(torch.zeros(FEAT))
        self.net = nn.Sequential(nn.Linear(2 * FEAT, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        known = ~torch.isnan(x)
        x = torch.where(known, x, self.fill)
        return self.net(torch.cat([x, known.float()], 1))[:, 0]


model = Impute()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for step in range(STEPS):
    x, y = records()
    pred = model(x)
    labelled = ~torch.isnan(y)
    loss = ((pred[labelled] - y[labelled]) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f} mean of x {x.mean().item()}")
print("final", losses[-1])
