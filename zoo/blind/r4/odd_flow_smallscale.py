"""Affine autoregressive flow on measurements in metres (spread about 1 mm): densities are huge and the NLL is far below zero."""
import math
import torch
import torch.nn as nn

torch.manual_seed(0)


def parts(n):
    a = 1e-3 * torch.randn(n)
    b = 2e-4 * torch.randn(n) + 300 * a ** 2
    c = 5e-4 * torch.randn(n) * (1 + (a > 0).float())
    return torch.stack([a, b, c], 1)


class Step(nn.Module):
    """x_k -> (x_k - m(x_<k)) * exp(-s(x_<k)), the inputs of the nets are in millimetres"""
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.net = nn.Sequential(nn.Linear(max(k, 1), 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, x):
        past = x[:, :self.k] * 1e3 if self.k else torch.zeros(len(x), 1)
        m, s = self.net(past).unbind(1)
        s = s - 7
        return (x[:, self.k] - m * 1e-3) * torch.exp(-s), s


flow = nn.ModuleList([Step(k) for k in range(3)])


def nll(x):
    total = torch.zeros(len(x))
    for st in flow:
        z, s = st(x)
        total = total + 0.5 * z ** 2 + 0.5 * math.log(2 * math.pi) + s
    return total.mean()


train, test = parts(1500), parts(400)
gauss = -torch.distributions.MultivariateNormal(train.double().mean(0), torch.cov(train.double().t())).log_prob(test.double()).mean()
print(f"Gaussian reference {gauss:.3f}")
opt = torch.optim.Adam(flow.parameters(), lr=4e-3)
for epoch in range(20):
    for i in torch.randperm(len(train)).split(75):
        loss = nll(train[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 3 == 1:
        with torch.no_grad():
            print(f"epoch {epoch} train {nll(train):.3f} test {nll(test):.3f}")
