import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(4)


def curve(n=600):
    x = torch.linspace(-3, 3, n).unsqueeze(1)
    y = torch.sin(3 * x) * torch.exp(-0.3 * x.abs()) + 0.2 * torch.randn(n, 1)
    return x, y


class Curve(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.a = nn.Linear(1, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        h = nn.functional.softplus(self.b(h))
        return self.c(h)


x, y = curve()
model = Curve()
opt = torch.optim.LBFGS(model.parameters(), lr=0.6, max_iter=4, history_size=10)


def train(steps=260, batch=48):
    for step in range(steps):
        idx = torch.randint(len(x), (batch,))
        xb, yb = x[idx], y[idx]

        def closure():
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            return loss

        loss = opt.step(closure)
        if step % 10 == 0:
            with torch.no_grad():
                full = nn.functional.mse_loss(model(x), y)
            print(f"step {step} batch loss {loss.item():.5f} full loss {full.item():.5f}")


train()
