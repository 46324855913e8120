"""GDP forecast in plain dollars."""
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, loc, scale):
        super().__init__()
        self.register_buffer("loc", loc)
        self.register_buffer("scale", scale)
        self.net = nn.Sequential(nn.Linear(7, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.loc + self.scale * self.net(x)


def main():
    torch.manual_seed(54)
    x = torch.randn(1600, 7)
    y = 4e9 + 2.5e9 * (x[:, :1] + 0.5 * x[:, 1:2] * x[:, 2:3]) + 1e8 * torch.randn(1600, 1)
    model = Head(y[:1300].mean(), y[:1300].std())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(400):
        i = torch.randint(0, 1300, (64,))
        loss = ((model(x[i]) - y[i]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            with torch.no_grad():
                val = ((model(x[1300:]) - y[1300:]) ** 2).mean().item()
            print(f"step {step} mse {loss.item():.4e} val {val:.4e} rmse {loss.item() ** 0.5:.3e}")
    with torch.no_grad():
        r2 = 1 - ((model(x[1300:]) - y[1300:]) ** 2).mean() / y[1300:].var()
    print(f"R2 {r2.item():.3f}")


main()
