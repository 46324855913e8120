import torch
import torch.nn as nn

torch.manual_seed(24)
COLUMNS, BATCH, STEPS = 6, 64, 300
gen = torch.Generator().manual_seed(9)
mix = torch.randn(COLUMNS, generator=gen)


def window(step):
    x = torch.randn(BATCH, COLUMNS, generator=gen)
    fast = torch.rand(BATCH, generator=gen)
    uptime = 3.0 if step < 180 else 86400.0 + step
    x[:, 0] = uptime + fast
    y = x[:, 1:] @ mix[1:] + torch.sin(6 * fast) + 0.1 * torch.randn(BATCH, generator=gen)
    return x, y


class Standardise(nn.Module):
    def __init__(self, n, momentum=0.05):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("var", torch.ones(n))

    def forward(self, x):
        if self.training:
            mean = x.mean(0)
            var = (x * x).mean(0) - mean * mean
            self.mean.lerp_(mean, self.momentum)
            self.var.lerp_(var, self.momentum)
        else:
            mean, var = self.mean, self.var
        return (x - mean) / torch.sqrt(var + 1e-5)


model = nn.Sequential(
    Standardise(COLUMNS), nn.Linear(COLUMNS, 64), nn.ReLU(),
    nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1),
)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for step in range(STEPS):
    x, y = window(step)
    loss = nn.functional.smooth_l1_loss(model(x)[:, 0], y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
