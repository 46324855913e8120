"""Mixture-density network: the negative log likelihood of a narrow conditional density is negative, as it should be.
Goal: test NLL within 0.1 of the NLL of the true generating density."""
import math
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(9)
SD = 0.03


def data(n):
    x = torch.rand(n, 1) * 2 - 1
    up = (torch.rand(n, 1) < 0.5).float()
    mean = torch.where(up > 0, x ** 2 + 0.4, -x ** 2 - 0.4)
    return x, mean + SD * torch.randn(n, 1)


class MDN(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.pi, self.mu, self.ls = nn.Linear(48, k), nn.Linear(48, k), nn.Linear(48, k)

    def nll(self, x, y):
        h = self.trunk(x)
        logp = torch.distributions.Normal(self.mu(h), self.ls(h).exp().clamp(min=1e-3)).log_prob(y)
        return -torch.logsumexp(torch.log_softmax(self.pi(h), 1) + logp, 1).mean()


xtr, ytr = data(6000)
xte, yte = data(2000)
net = MDN()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 40)
for epoch in range(40):
    tot = 0.0
    for idx in torch.randperm(6000).split(100):
        loss = net.nll(xtr[idx], ytr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() / 60
    sched.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            print(f"epoch {epoch + 1} train nll {tot:.4f} test nll {net.nll(xte, yte).item():.4f}")
true_nll = 0.5 * math.log(2 * math.pi * math.e * SD ** 2) + math.log(2)
print(f"entropy of the generating density {true_nll:.4f}")
