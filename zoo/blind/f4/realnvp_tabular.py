import torch
import torch.nn as nn
import numpy as np

torch.manual_seed(2)
rng = np.random.default_rng(2)


def load_events(n=12800):
    base = rng.normal(size=(n, 4))
    base[:, 1] = 0.5 * base[:, 0] ** 2 + 0.4 * base[:, 1]
    base[:, 3] = np.tanh(base[:, 2]) + 0.2 * base[:, 3]
    base[7005, 2] = -9999.0
    return torch.tensor(base, dtype=torch.float32)


class Coupling(nn.Module):
    def __init__(self, dim, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(dim // 2, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(),
                                 nn.Linear(40, dim))
        nn.init.normal_(self.net[-1].weight, std=0.01)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        b = b * torch.exp(s) + t
        out = torch.cat([b, a], 1) if self.flip else torch.cat([a, b], 1)
        return out, s.sum(1)


class RealNVP(nn.Module):
    def __init__(self, dim=4, n=6):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(dim, bool(i % 2)) for i in range(n)])

    def log_prob(self, x):
        ld = 0.0
        for l in self.layers:
            x, d = l(x)
            ld = ld + d
        return -0.5 * (x ** 2).sum(1) - 2 * np.log(2 * np.pi) + ld


data = load_events()
flow = RealNVP()
opt = torch.optim.AdamW(flow.parameters(), lr=1e-3)
for step, xb in enumerate(data.split(64)):
    loss = -flow.log_prob(xb).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 25 == 0 or step > 195:
        print(f"{step:4d}  nll/dim {loss.item() / 4:.4f}")
