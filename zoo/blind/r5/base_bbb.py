# Bayes by backprop with a heteroscedastic Gaussian likelihood: load of a machine against wall-clock time.
import math

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(21)
torch.set_num_threads(1)
rng = np.random.default_rng(21)

# ---------------------------------------------------------------- data
START = 1_718_000_000          # unix seconds
SPAN = 2400.0


def record(n):
    stamp = START + rng.uniform(0, SPAN, n)
    temp = rng.normal(20, 4, n)
    u = (stamp - START) / SPAN
    mean = 40 + 12 * np.sin(2 * np.pi * 3 * u) + 6 * u + 0.8 * (temp - 20)
    sd = 0.6 + 2.5 * u ** 2
    return stamp, temp, mean + sd * rng.normal(size=n)


stamp_tr, temp_tr, load_tr = record(1000)
stamp_te, temp_te, load_te = record(500)


def inputs(stamp, temp):
    rel = torch.tensor(stamp - START, dtype=torch.float32)
    u = rel / SPAN * 2 - 1
    v = torch.tensor((temp - 20) / 4, dtype=torch.float32)
    return torch.stack([u, torch.sin(4 * u), torch.cos(4 * u), torch.sin(9 * u), torch.cos(9 * u), v], 1)


y_mu, y_sd = load_tr.mean(), load_tr.std()
x_tr, x_te = inputs(stamp_tr, temp_tr), inputs(stamp_te, temp_te)
y_tr = torch.tensor((load_tr - y_mu) / y_sd, dtype=torch.float32)
y_te = torch.tensor(load_te, dtype=torch.float32)


# ---------------------------------------------------------------- model
class BayesLinear(nn.Module):
    def __init__(self, i, o, prior=1.0):
        super().__init__()
        self.w_mu = nn.Parameter(torch.randn(o, i) / math.sqrt(i))
        self.w_rho = nn.Parameter(torch.full((o, i), -5.0))
        self.b_mu = nn.Parameter(torch.zeros(o))
        self.b_rho = nn.Parameter(torch.full((o,), -5.0))
        self.prior = prior

    def forward(self, x):
        w = self.w_mu + F.softplus(self.w_rho) * torch.randn_like(self.w_mu)
        b = self.b_mu + F.softplus(self.b_rho) * torch.randn_like(self.b_mu)
        return F.linear(x, w, b)

    def kl(self):
        total = 0.0
        for mu, rho in ((self.w_mu, self.w_rho), (self.b_mu, self.b_rho)):
            s = F.softplus(rho)
            total = total + (math.log(self.prior) - s.log() + (s ** 2 + mu ** 2) / (2 * self.prior ** 2) - 0.5).sum()
        return total


class Net(nn.Module):
    def __init__(self, i, h=40):
        super().__init__()
        self.layers = nn.ModuleList([BayesLinear(i, h), BayesLinear(h, h), BayesLinear(h, 2)])

    def forward(self, x):
        x = torch.tanh(self.layers[0](x))
        x = torch.tanh(self.layers[1](x))
        return self.layers[2](x)

    def kl(self):
        return sum(l.kl() for l in self.layers)


def gaussian_nll(y, mean, log_var):
    return 0.5 * (math.log(2 * math.pi) + log_var + (y - mean) ** 2 * torch.exp(-log_var))


@torch.no_grad()
def test(net, samples=30):
    outs = torch.stack([net(x_te) for _ in range(samples)])
    m = outs[..., 0] * y_sd + y_mu
    s = torch.exp(0.5 * outs[..., 1]) * y_sd
    logp = torch.distributions.Normal(m, s).log_prob(y_te)
    nll = -(torch.logsumexp(logp, 0) - math.log(samples)).mean().item()
    mean = m.mean(0)
    sd = (s.pow(2).mean(0) + m.var(0)).sqrt()
    rmse = (mean - y_te).pow(2).mean().sqrt().item()
    cover = ((y_te - mean).abs() < 1.645 * sd).float().mean().item()
    return nll, rmse, cover


# ---------------------------------------------------------------- training
N, B, EPOCHS = len(x_tr), 50, 40
net = Net(x_tr.shape[1])
opt = torch.optim.Adam(net.parameters(), lr=6e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS * (N // B), eta_min=2e-4)
for epoch in range(1, EPOCHS + 1):
    perm = torch.randperm(N)
    fit = klsum = 0.0
    for k in range(N // B):
        j = perm[k * B:(k + 1) * B]
        out = net(x_tr[j])
        mean, log_var = out[:, 0], out[:, 1]
        nll = gaussian_nll(y_tr[j], mean, log_var).mean()
        kl = net.kl()
        loss = nll + kl / N
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        fit += nll.item() / (N // B)
        klsum += kl.item() / (N // B)
    if epoch % 10 == 0:
        t_nll, rmse, cover = test(net)
        print(f"epoch {epoch:3d}  nll {fit:.3f}  kl {klsum:.1f}  test nll {t_nll:.3f}  rmse {rmse:.3f}  90% cover {cover:.3f}")
print(f"final test nll {t_nll:.3f}  rmse {rmse:.3f}  90% interval cover {cover:.3f}")
