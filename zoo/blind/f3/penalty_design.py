import torch

torch.manual_seed(11)
N = 20
A = torch.randn(N, N) / N ** 0.5
target = torch.randn(N)


def objective(x):
    return 0.5 * ((A @ x - target) ** 2).sum() + 0.05 * x.abs().sum()


def constraint(x):
    return torch.stack([x.sum() - 1.0, (x ** 2).sum() - 4.0])


def lagrangian(x, rho):
    return objective(x) + rho * constraint(x).pow(2).sum()


def solve(steps=300, lr=2e-3, growth=1.05):
    x = torch.nn.Parameter(0.3 * torch.randn(N))
    opt = torch.optim.SGD([x], lr=lr)
    rho = 0.01
    for k in range(steps):
        loss = lagrangian(x, rho)
        opt.zero_grad()
        loss.backward()
        opt.step()
        rho *= growth
        if k % 20 == 0:
            with torch.no_grad():
                print(f"iter {k} objective {objective(x).item():.4f} violation {constraint(x).abs().max().item():.4f}")
    return x


if __name__ == "__main__":
    solve()
