import torch
import torch.nn as nn

torch.manual_seed(8)


def drive(batch, length):
    """Wheel ticks with a validity flag; the target is the distance covered by the valid ticks."""
    ticks = torch.rand(batch, length)
    valid = (torch.rand(batch, length) < 0.5).float()
    return torch.stack([ticks, valid], -1), (ticks * valid).sum(1, keepdim=True) * 0.2


class IRNN(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.inp = nn.Linear(2, hidden)
        self.rec = nn.Linear(hidden, hidden, bias=False)
        self.out = nn.Linear(hidden, 1)
        nn.init.eye_(self.rec.weight)
        nn.init.normal_(self.inp.weight, std=0.1)
        nn.init.zeros_(self.inp.bias)
        self.hidden = hidden

    def forward(self, x):
        h = x.new_zeros(x.size(0), self.hidden)
        for t in range(x.size(1)):
            h = nn.functional.leaky_relu(self.inp(x[:, t]) + self.rec(h), 0.1)
        return self.out(h)


net = IRNN()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
length = 8
for step in range(200):
    if step and step % 40 == 0:
        length = int(length * 1.5)
    x, y = drive(24, length)
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print("step", step, "T", length, "mse", loss.item())
