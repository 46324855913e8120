import torch
import torch.nn as nn

torch.manual_seed(28)
INPUT, HIDDEN, BATCH, STEPS = 16, 64, 96, 340
gen = torch.Generator().manual_seed(4)
freq = torch.randn(INPUT, generator=gen) * 0.25


def draw():
    x = torch.randn(BATCH, INPUT, generator=gen)
    return x, torch.sin(x @ freq)[:, None]


class UnitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(INPUT, HIDDEN)
        self.gain = nn.Parameter(torch.ones(HIDDEN))
        self.second = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x) * self.gain))

    @torch.no_grad()
    def drop_units(self, share):
        strength = self.second.weight[0].abs() * self.gain.abs()
        weakest = strength.argsort()[:int(share * HIDDEN)]
        self.first.weight[weakest] = 0.0
        self.second.weight[:, weakest] = 0.0

    @torch.no_grad()
    def unit_rows(self):
        size = self.first.weight.pow(2).sum(1, keepdim=True).sqrt()
        self.first.weight.div_(size)


model = UnitNet()
params = list(model.parameters())
speed = [torch.zeros_like(p) for p in params]
losses = []
for step in range(STEPS):
    x, y = draw()
    loss = ((model(x) - y) ** 2).mean()
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, s, g in zip(params, speed, grads):
            s.mul_(0.9).add_(g)
            p.sub_(0.02 * s)
    if step == 250:
        model.drop_units(0.2)
    model.unit_rows()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
