"""Fit a small surrogate of a response surface with L-BFGS, new measurements join in rounds."""
import torch
import torch.nn as nn

torch.manual_seed(70)
torch.set_num_threads(1)

ROUNDS, PER_ROUND = 6, 12


def response(x):
    return (torch.sin(3 * x[:, 0]) * torch.cos(2 * x[:, 1]) + 0.5 * x[:, 2] ** 2 - 0.3 * x[:, 3]).unsqueeze(1)


def measure(n, g, spread):
    x = (torch.rand(n, 4, generator=g) * 2 - 1) * spread
    return x, response(x) + 0.02 * torch.randn(n, 1, generator=g)


class Surrogate(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)


def main():
    g = torch.Generator().manual_seed(7)
    model = Surrogate()
    opt = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=12, history_size=20)
    x, y = measure(600, g, 1.0)
    step = 0
    for rnd in range(ROUNDS):
        if rnd > 0:
            # every round looks at a fresh lot of measurements
            spread = 1.0 if rnd < 3 else 2.5
            x, y = measure(600, g, spread)
        for _ in range(PER_ROUND):

            def closure():
                opt.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                return loss

            loss = opt.step(closure)
            if step % 3 == 0:
                print(f"round {rnd} step {step} loss {loss.item():.6f}")
            step += 1
    with torch.no_grad():
        xt, yt = measure(1000, g, 1.0)
        print("test rmse", nn.functional.mse_loss(model(xt), yt).sqrt().item())


if __name__ == "__main__":
    main()
