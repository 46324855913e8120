import torch
from torch import nn

torch.manual_seed(0)
k = 0.5
device = "cuda" if torch.cuda.is_available() else "cpu"


class Level(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, t):
        return 1.0 + t * self.net(t)


def residual(model, t):
    t = t.clone().requires_grad_(True)
    h = model(t)
    dh, = torch.autograd.grad(h.sum(), t, create_graph=True)
    return dh + k * torch.sqrt(h)


def horizon(step, total):
    return 0.5 + 4.5 * step / total


def main(total=400):
    model = Level().to(device)
    with torch.no_grad():
        model.net[-1].weight.mul_(0.3)
        model.net[-1].bias.fill_(-0.4)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(total):
        T = horizon(step, total)
        t = torch.rand(80, 1).to(device) * T
        r = residual(model, t)
        loss = (r ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            with torch.no_grad():
                grid = torch.linspace(0, min(T, 3.9), 50, device=device).unsqueeze(1)
                exact = (1 - k * grid / 2).clamp(min=0) ** 2
                err = (model(grid) - exact).abs().max()
            print(f"step {step} T {T:.2f} residual {loss.item():.2e} max err {err.item():.3f}")


main()
