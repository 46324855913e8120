import torch
from torch import nn

torch.manual_seed(37)
N = 5000
area = 40 + 160 * torch.rand(N)
rooms = (area / 30).round() + torch.randint(-1, 2, (N,))
age = 60 * torch.rand(N)
price = 2.1e3 * area + 4e3 * rooms - 300 * age + 2e4 * torch.randn(N)     # in euro
X = torch.stack([(area - 120) / 46, (rooms - 4) / 1.6, (age - 30) / 17], 1)


class QuantileNet(nn.Module):
    def __init__(self, qs=(0.1, 0.5, 0.9)):
        super().__init__()
        self.register_buffer("qs", torch.tensor(qs))
        self.f = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, len(qs)))

    def forward(self, x):
        return self.f(x)

    def pinball(self, pred, y):
        e = y[:, None] - pred
        return torch.maximum(self.qs * e, (self.qs - 1) * e).mean()


net = QuantileNet()
opt = torch.optim.RMSprop(net.parameters(), lr=2e-3, alpha=0.9, centered=True)
for it in range(300):
    idx = torch.randint(0, N, (128,))
    loss = net.pinball(net(X[idx]), price[idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 20 == 0:
        print(it, "pinball", f"{loss.item():.1f}")
