import torch
import torch.nn as nn

torch.manual_seed(53)


class Pricer(nn.Module):
    def __init__(self, d=6, h=48):
        super().__init__()
        self.inp = nn.Linear(d, h)
        self.out = nn.Linear(h, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x)))


net = Pricer()
opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)


def market_day(day):
    x = torch.randn(32, 6)
    y = torch.sin(x[:, :1]) + 0.4 * x[:, 1:2] * x[:, 2:3]
    if day in (111, 112, 205):
        y = y * 400.0 + 900.0
    return x, y


losses = []
for day in range(360):
    x, y = market_day(day)
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    losses.append(loss.item())
    if day % 30 == 29:
        print(f"day {day + 1}: mean loss {sum(losses[-30:]) / 30:.4f}  last {losses[-1]:.4f}")

best = min(losses)
print(f"best day loss {best:.4f}")
