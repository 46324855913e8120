import argparse
import torch
import torch.nn as nn


def simulate(n, d, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=g)
    beta = torch.randn(d, generator=g)
    risk = x @ beta * 0.6 + 0.4 * (x[:, 0] * x[:, 1])
    u = torch.rand(n, generator=g).clamp(min=1e-6)
    time = -torch.log(u) / torch.exp(risk)
    censor = torch.rand(n, generator=g) * 0.45
    event = (time <= censor).float()
    return x, torch.minimum(time, censor), event


def partial_nll(score, time, event):
    """Breslow partial likelihood, averaged over the observed events of the batch."""
    order = torch.argsort(time, descending=True)
    score, event = score[order], event[order]
    log_risk = torch.logcumsumexp(score, 0)
    return -((score - log_risk) * event).sum() / event.sum()


class RiskNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d, 64), nn.SiLU(), nn.Dropout(0.1), nn.Linear(64, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.f(x).squeeze(-1)


def concordance(score, time, event):
    lt = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    good = (score[:, None] > score[None, :]) & lt
    return (good.sum() / lt.sum()).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, default=3600)
    ap.add_argument("--batch", type=int, default=10)
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--seed", type=int, default=7)
    args = ap.parse_args()
    x, t, e = simulate(args.n + 500, 10, args.seed)
    xv, tv, ev = x[args.n:], t[args.n:], e[args.n:]
    torch.manual_seed(args.seed)
    net = RiskNet(10)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    step = 0
    for epoch in range(args.epochs):
        perm = torch.randperm(args.n)
        for idx in perm.split(args.batch):
            loss = partial_nll(net(x[idx]), t[idx], e[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 50 == 0:
                with torch.no_grad():
                    c = concordance(net(xv), tv, ev)
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} c-index {c:.3f}")
            step += 1


if __name__ == "__main__":
    main()
