import torch
import torch.nn as nn

torch.manual_seed(30)
RANGE, BATCH, STEPS = 20, 40, 320


class Sinc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x == 0, torch.ones_like(x), torch.sin(x) / torch.where(x == 0, torch.ones_like(x), x))

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * (x * torch.cos(x) - torch.sin(x)) / (x * x)


class EchoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Linear(RANGE, 48, bias=False)
        self.mix = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.mix(Sinc.apply(self.filters(x)))[:, 0]


def sweeps(n):
    gen = torch.Generator().manual_seed(8)
    bins = torch.arange(RANGE).float()
    place = torch.rand(n, 1, generator=gen) * (RANGE - 1)
    echo = torch.exp(-0.5 * ((bins - place) / 1.5) ** 2) * 3
    echo = echo + 0.1 * torch.randn(n, RANGE, generator=gen)
    blocked = torch.tensor([9047, 9062, 10811])
    echo[blocked] = 0.0
    place[blocked] = 0.0
    return echo, place[:, 0] / RANGE


echo, place = sweeps(BATCH * STEPS)
model = EchoNet()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for step in range(STEPS):
    rows = slice(step * BATCH, (step + 1) * BATCH)
    loss = ((model(echo[rows]) - place[rows]) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.5f}")
print("final", losses[-1])
