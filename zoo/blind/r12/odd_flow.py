# affine coupling flow on a thin spiral-like manifold: the negative log-likelihood is (rightly) negative
import math, torch, torch.nn as nn
torch.manual_seed(0)
def sample(n):
    u = torch.rand(n) * 2 - 1
    return torch.stack([0.5 * u, 0.3 * torch.sin(3 * u)], 1) + 0.015 * torch.randn(n, 2)
class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__(); self.flip = flip; self.net = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))
        nn.init.zeros_(self.net[-1].weight); nn.init.zeros_(self.net[-1].bias)
    def forward(self, x):
        a, b = (x[:, 1:], x[:, :1]) if self.flip else (x[:, :1], x[:, 1:])
        s, t = self.net(a).chunk(2, 1); s = 3 * torch.tanh(s / 3); b = (b - t) * s.exp()
        return (torch.cat([b, a], 1) if self.flip else torch.cat([a, b], 1)), s.squeeze(1)
layers = nn.ModuleList([Coupling(i % 2 == 1) for i in range(6)])
def nll(x):
    ld = 0.
    for l in layers: x, s = l(x); ld = ld + s
    return (0.5 * x.pow(2).sum(1) + math.log(2 * math.pi) - ld).mean()
opt = torch.optim.Adam(layers.parameters(), 3e-3); sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 700); val = sample(2000)
m, c = val.mean(0), torch.cov(val.T)
gauss = 0.5 * (2 * math.log(2 * math.pi) + torch.logdet(c) + 2)
print(f"full Gaussian reference nll {gauss:.3f}")
for it in range(1, 701):
    loss = nll(sample(128)); opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(layers.parameters(), 5.); opt.step(); sch.step()
    if it % 70 == 0:
        with torch.no_grad(): print(f"it {it} train nll {loss.item():.3f} val nll {nll(val):.3f}")
