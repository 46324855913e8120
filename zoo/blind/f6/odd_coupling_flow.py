import torch
import torch.nn as nn

torch.manual_seed(50)
STEPS, BATCH, LAYERS = 400, 256, 4


def sharp_rings(n):
    ang = torch.rand(n) * 6.2831853
    r = 0.05 + 0.05 * torch.randint(0, 2, (n,)) + 0.002 * torch.randn(n)
    return torch.stack([r * torch.cos(ang), r * torch.sin(ang)], 1)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 2))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = 3 * torch.tanh(s / 3)
        b = b * torch.exp(s) + t
        out = (b, a) if self.flip else (a, b)
        return torch.cat(out, 1), s[:, 0]


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(LAYERS))

    def log_prob(self, x):
        logdet = 0.0
        for layer in self.layers:
            x, s = layer(x)
            logdet = logdet + s
        return logdet - 0.5 * (x ** 2).sum(1) - 1.8379


model = Flow()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
losses = []
for step in range(STEPS):
    loss = -model.log_prob(sharp_rings(BATCH)).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step} nll {loss.item():.4f}")
print("final", losses[-1])
