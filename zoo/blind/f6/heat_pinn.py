import torch
import torch.nn as nn

torch.manual_seed(13)
STEPS, POINTS = 320, 256


def random_points(n):
    return torch.rand(n, 2) * 2 - 1


def refined_points():
    line = torch.linspace(-1, 1, 17)
    yy, xx = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([xx.reshape(-1), yy.reshape(-1)], 1)


def boundary(n):
    ang = torch.rand(n) * 6.2831853
    return torch.stack([torch.cos(ang), torch.sin(ang)], 1)


class Field(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, hidden), nn.Tanh(),
            nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, 1),
        )

    def forward(self, xy):
        r = torch.sqrt((xy ** 2).sum(1, keepdim=True))
        return self.net(torch.cat([xy, r], 1))[:, 0]


def laplacian(u, xy):
    g = torch.autograd.grad(u.sum(), xy, create_graph=True)[0]
    gxx = torch.autograd.grad(g[:, 0].sum(), xy, create_graph=True)[0][:, 0]
    gyy = torch.autograd.grad(g[:, 1].sum(), xy, create_graph=True)[0][:, 1]
    return gxx + gyy


model = Field()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for step in range(STEPS):
    if step >= 200 and step % 10 == 0:
        xy = refined_points()
    else:
        xy = random_points(POINTS)
    xy.requires_grad_(True)
    u = model(xy)
    source = torch.exp(-4 * (xy.detach() ** 2).sum(1))
    residual = laplacian(u, xy) + 4 * source
    loss = nn.functional.smooth_l1_loss(residual, torch.zeros_like(residual))
    loss = loss + 5 * (model(boundary(64)) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
