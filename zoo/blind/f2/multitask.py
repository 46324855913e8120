import torch
import torch.nn as nn

torch.manual_seed(37)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.rank = nn.Linear(32, 1)
        self.value = nn.Linear(32, 3)

    def forward(self, x):
        h = self.trunk(x)
        return self.rank(h).squeeze(1), self.value(h)


def data(n=3000):
    x = torch.randn(n, 12)
    y_rank = torch.sign(x[:, 0] + 0.5 * x[:, 1])
    x[:, 0] += 0.6 * y_rank
    y_val = torch.stack([x[:, 2] * x[:, 3], x[:, 4].abs(), torch.sin(2 * x[:, 5])], 1)
    return x, y_rank, y_val + 0.1 * torch.randn(n, 3)


x, y_rank, y_val = data()
net = Shared()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(400):
    i = torch.randint(0, len(x), (32,))
    s, v = net(x[i])
    hinge = torch.relu(0.7 - y_rank[i] * s).mean()
    mse = ((v - y_val[i]) ** 2).mean()
    parts = torch.stack([hinge, mse])
    ease = 0.05 / parts.detach()
    weights = 2 * torch.softmax(ease, dim=0)
    loss = (weights * parts).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 0:
        print(f"step {step:3d} hinge {hinge.item():.4f} mse {mse.item():.4f} w {weights[0].item():.2f}/{weights[1].item():.2f}")
