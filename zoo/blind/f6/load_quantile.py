import torch
import torch.nn as nn

torch.manual_seed(35)
FEAT, BATCH, STEPS, PLAN = 12, 64, 420, 300
QUANTILES = torch.tensor([0.1, 0.5, 0.9])
gen = torch.Generator().manual_seed(17)
coef = torch.randn(FEAT, generator=gen)


def hours():
    x = torch.randn(BATCH, FEAT, generator=gen)
    noise = torch.randn(BATCH, generator=gen) * (0.5 + 0.5 * x[:, 0].abs())
    return x, x @ coef + noise


class QuantileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEAT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, x):
        return self.net(x)


def pinball(pred, y):
    err = y[:, None] - pred
    return torch.maximum(QUANTILES * err, (QUANTILES - 1) * err).mean()


model = QuantileNet()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda k: 1.0 - k / PLAN)
losses = []
for step in range(STEPS):
    x, y = hours()
    loss = pinball(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
