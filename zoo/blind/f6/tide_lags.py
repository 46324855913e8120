import torch
import torch.nn as nn

torch.manual_seed(37)
LAGS, BATCH, STEPS = 16, 32, 212
gen = torch.Generator().manual_seed(18)
response = torch.randn(LAGS, generator=gen) * torch.exp(-torch.arange(LAGS) / 5.0)


def gauge_readings():
    x = torch.randn(BATCH, LAGS, generator=gen)
    level = x @ response + 0.3 * torch.randn(BATCH, generator=gen)
    return x, level


class LagModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.0))
        self.lags = nn.Linear(LAGS, 1)

    def forward(self, x):
        return self.lags(x)[:, 0] + 0.1 * torch.tanh(self.scale)


def micro_batches(step):
    return 4 if step < 150 else 12


def train_step(model, opt, pieces):
    opt.zero_grad()
    total = 0.0
    for _ in range(pieces):
        x, level = gauge_readings()
        loss = ((model(x) - level) ** 2).mean()
        loss.backward()
        total += loss.item()
    opt.step()
    return total / pieces


model = LagModel()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(STEPS):
    losses.append(train_step(model, opt, micro_batches(step)))
    if step % 10 == 0:
        print(f"step {step} loss {losses[-1]:.4f}")
print("final", losses[-1])
