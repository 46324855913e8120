import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(19)


class Momentum:
    def __init__(self, params, lr, beta):
        self.params = list(params)
        self.lr = lr
        self.beta = beta
        self.speed = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, factor):
        for p, v in zip(self.params, self.speed):
            v.mul_(self.beta).add_(p.grad)
            p.sub_(self.lr * factor * v)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def rentals(n=3200):
    hour = torch.rand(n) * 24
    temp = torch.randn(n)
    rain = (torch.rand(n) < 0.2).float()
    x = torch.stack([torch.sin(hour / 3.82), torch.cos(hour / 3.82), temp, rain], 1)
    y = 1.5 * x[:, 0] + 0.8 * torch.tanh(temp) - rain + 0.2 * torch.randn(n)
    return x, y


x, y = rentals()
model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
epochs, batch_size = 8, 32
total = epochs * (len(x) // (batch_size * 4))
opt = Momentum(model.parameters(), lr=0.03, beta=0.9)

step = 0
for epoch in range(epochs):
    order = torch.randperm(len(x))
    seen = 0.0
    for idx in order.split(batch_size):
        loss = F.mse_loss(model(x[idx]).squeeze(1), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step(1 - step / total)
        seen += loss.item() * len(idx)
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.4f}")
        step += 1
    print(f"epoch {epoch} mean loss {seen / len(x):.4f}")
