import torch
import torch.nn as nn

torch.manual_seed(22)
N, STEPS, ROUNDS = 64, 320, 15


def target_cloud(n):
    ang = torch.rand(n) * 6.2831853
    ring = torch.stack([torch.cos(ang), torch.sin(ang)], 1) * 2
    far = torch.rand(n) < 0.15
    ring[far] = torch.tensor([4.0, 4.0]) + 0.3 * torch.randn(int(far.sum()), 2)
    return ring


def regularisation(step):
    return max(2.0 * 0.98 ** step, 0.01)


def transport_cost(x, y, reg):
    cost = torch.cdist(x, y) ** 2
    kernel = torch.exp(-cost / reg)
    a = torch.full((len(x),), 1.0 / len(x))
    b = torch.full((len(y),), 1.0 / len(y))
    u, v = torch.ones_like(a), torch.ones_like(b)
    for _ in range(ROUNDS):
        u = a / (kernel @ v)
        v = b / (kernel.t() @ u)
    plan = u[:, None] * kernel * v[None, :]
    return (plan * cost).sum()


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, z):
        return self.net(z)


model = Generator()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for step in range(STEPS):
    reg = regularisation(step)
    fake = model(torch.randn(N, 4))
    loss = transport_cost(fake, target_cloud(N), reg)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} reg {reg:.4f} loss {loss.item():.4f}")
print("final", losses[-1])
