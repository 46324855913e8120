import argparse
import numpy as np
import torch


def load(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 8)).astype(np.float32)
    exposure = rng.uniform(0.0, 1.0, n).astype(np.float32)
    exposure[rng.random(n) < 0.02] = 0.0
    lam = exposure * np.exp(0.3 + 0.8 * x[:, 0] - 0.5 * x[:, 1] + 0.6 * (x[:, 2] > 1))
    claims = rng.poisson(lam).astype(np.float32)
    return x, exposure, claims


def deviance(eta, y):
    mu = torch.exp(eta)
    return (2 * (torch.xlogy(y, y) - y * eta - (y - mu))).mean()


def run(args):
    torch.manual_seed(args.seed)
    x, expo, y = load(3000, args.seed)
    w = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    opt = torch.optim.SGD(w.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    rng = np.random.default_rng(0)
    for step in range(args.steps):
        k = rng.integers(0, 3000, 64)
        offset = torch.log(torch.from_numpy(expo[k]).clamp(min=1e-6))
        eta = (w(torch.from_numpy(x[k])).squeeze(1) + offset).clamp(-20, 10)
        loss = deviance(eta, torch.from_numpy(y[k]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step} deviance {loss.item():.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--steps", type=int, default=400)
    p.add_argument("--seed", type=int, default=4)
    run(p.parse_args())
