"""Camera rotation from key points, with a smoothness term between consecutive frames."""
import torch
from torch import nn

torch.manual_seed(9)
POINTS = torch.randn(6, 3)
BS = 32


def rot_z(a):
    c, s, o = a.cos(), a.sin(), torch.zeros_like(a)
    return torch.stack([c, -s, o, s, c, o, o, o, o + 1], 1).view(-1, 3, 3)


def rot_x(a):
    c, s, o = a.cos(), a.sin(), torch.zeros_like(a)
    return torch.stack([o + 1, o, o, o, c, -s, o, s, c], 1).view(-1, 3, 3)


def video(n=6400):
    speed = 0.02 + 0.05 * torch.rand(n)
    speed[3365:3385] = 0.0
    t = speed.cumsum(0)
    rots = rot_z(t) @ rot_x(0.7 * torch.sin(0.31 * t))
    obs = torch.einsum("nij,pj->npi", rots, POINTS)
    return obs, rots


def six_d(v):
    a, b = v[:, :3], v[:, 3:]
    x = nn.functional.normalize(a, dim=1)
    z = nn.functional.normalize(torch.cross(x, b, dim=1), dim=1)
    y = torch.cross(z, x, dim=1)
    return torch.stack([x, y, z], 2)


def geodesic(r1, r2):
    m = r1 @ r2.transpose(1, 2)
    cos = (m.diagonal(dim1=1, dim2=2).sum(1) - 1) / 2
    return torch.acos(cos)


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(18, 64), nn.GELU(), nn.Linear(64, 6))

    def forward(self, pts):
        return six_d(self.net(pts.flatten(1)))


def run():
    obs, rots = video()
    net = PoseNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for it in range(len(obs) // BS):
        sl = slice(it * BS, (it + 1) * BS)
        pred = net(obs[sl])
        chordal = ((pred - rots[sl]) ** 2).sum((1, 2)).mean()
        smooth = geodesic(pred[1:], pred[:-1]).mean()
        loss = chordal + 0.05 * smooth
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 20 == 0:
            print(f"iter {it}: chordal {chordal.item():.5f} smooth {smooth.item():.5f}")


run()
