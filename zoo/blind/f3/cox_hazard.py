import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--batch", type=int, default=19)
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--seed", type=int, default=5)
args = parser.parse_args()

torch.manual_seed(args.seed)
N, D = 3000, 12

covariates = torch.randn(N, D)
beta = torch.randn(D) * 0.4
true_time = torch.distributions.Exponential(torch.exp(covariates @ beta)).sample()
censor_time = torch.distributions.Exponential(torch.full((N,), 4.0)).sample()
observed = torch.minimum(true_time, censor_time)
indicator = (true_time <= censor_time).float()
print("event rate", indicator.mean().item())


class Hazard(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(D, 32), nn.SELU(), nn.Linear(32, 1, bias=False))

    def forward(self, x):
        return self.layers(x).squeeze(1)


def partial_likelihood(risk, time, event):
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    contrib = risk - torch.logcumsumexp(risk, dim=0)
    return -(contrib * event).sum() / event.sum()


def concordance(risk, time, event):
    later = time.unsqueeze(0) > time.unsqueeze(1)
    ok = risk.unsqueeze(1) > risk.unsqueeze(0)
    pairs = later & (event.unsqueeze(1) > 0)
    return (ok & pairs).sum().item() / pairs.sum().item()


net = Hazard()
optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=1e-3)
running = 0.0
for it in range(args.steps):
    idx = torch.randint(0, N, (args.batch,))
    loss = partial_likelihood(net(covariates[idx]), observed[idx], indicator[idx])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    running += loss.item()
    if (it + 1) % 50 == 0:
        with torch.no_grad():
            c = concordance(net(covariates[:800]), observed[:800], indicator[:800])
        print(f"step {it + 1}: loss {running / 50:.4f}  c-index {c:.3f}")
        running = 0.0
