import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(33)


class Critic(nn.Module):
    def __init__(self, d, h=10):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, x):
        return self.net(x)


class Generator(nn.Module):
    def __init__(self, z, d, h=32):
        super().__init__()
        self.z = z
        self.net = nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, d))

    def forward(self, n):
        return self.net(torch.randn(n, self.z).to(device))


def real_batch(n):
    k = torch.randint(0, 4, (n,))
    c = torch.tensor([[2.0, 2.0], [-2.0, 2.0], [2.0, -2.0], [-2.0, -2.0]])
    return (c[k] + 0.2 * torch.randn(n, 2)).to(device)


def penalty(critic, real, fake):
    a = torch.rand(len(real), 1).to(device)
    mix = (a * real + (1 - a) * fake).requires_grad_(True)
    grad, = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)
    slope = torch.sqrt((grad ** 2).sum(1))
    return ((slope - 1) ** 2).mean()


C, G = Critic(2).to(device), Generator(4, 2).to(device)
oc = torch.optim.RMSprop(C.parameters(), lr=4e-3)
og = torch.optim.RMSprop(G.parameters(), lr=1e-3)
for it in range(150):
    for _ in range(2):
        real, fake = real_batch(32), G(32).detach()
        lc = C(fake).mean() - C(real).mean() + 5 * penalty(C, real, fake)
        oc.zero_grad(); lc.backward(); oc.step()
    lg = -C(G(32)).mean()
    og.zero_grad(); lg.backward(); og.step()
    if it % 10 == 0:
        print(f"iter {it:3d} critic {lc.item():+.4f} gen {lg.item():+.4f}")
