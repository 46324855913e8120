import torch
import torch.nn as nn


class LARS(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, momentum=0.9, trust=0.02, weight_decay=1e-4):
        super().__init__(params, dict(lr=lr, momentum=momentum, trust=trust, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                d = p.grad
                if p.ndim > 1:
                    local = g["trust"] * p.norm() / d.norm()
                    d = (d + g["weight_decay"] * p) * local
                buf = self.state[p].setdefault("buf", torch.zeros_like(p))
                buf.mul_(g["momentum"]).add_(d, alpha=g["lr"])
                p.sub_(buf)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, 2 * d)
        self.down = nn.Linear(2 * d, d)
        nn.init.zeros_(self.down.weight)       # start as the identity
        nn.init.zeros_(self.down.bias)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


torch.manual_seed(2)
net = nn.Sequential(nn.Linear(16, 32), Block(32), Block(32), nn.Linear(32, 6))
proto = torch.randn(6, 16)
opt = LARS(net.parameters())
for step in range(120):
    y = torch.randint(0, 6, (64,))
    x = proto[y] + 1.2 * torch.randn(64, 16)
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(step, loss.item())
