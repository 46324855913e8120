import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def camera_rays(n):
    angle = torch.rand(n) * 6.2832
    offset = torch.rand(n) * 2 - 1
    direction = torch.stack([torch.cos(angle), torch.sin(angle)], 1)
    normal = torch.stack([-torch.sin(angle), torch.cos(angle)], 1)
    origin = normal * offset.unsqueeze(1) - direction * 1.5
    hit = (offset.abs() < 0.5).float()
    return origin, direction, hit


class Field(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(10, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, p):
        bands = [p]
        for f in (1.0, 2.0):
            bands += [torch.sin(3.0 * f * p), torch.cos(3.0 * f * p)]
        return nn.functional.softplus(self.net(torch.cat(bands, -1)).squeeze(-1) - 1.0)


def render(field, origin, direction, samples=24):
    t = torch.linspace(0.0, 3.0, samples)
    points = origin[:, None, :] + t[None, :, None] * direction[:, None, :]
    density = field(points)
    alpha = 1 - torch.exp(-density * (3.0 / samples))
    through = torch.cumprod(1 - alpha, dim=1)
    return 1 - through[:, -1]


field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=4e-3)
for step in range(700):
    origin, direction, hit = camera_rays(96)
    opacity = render(field, origin, direction)
    loss = -(hit * torch.log(opacity) + (1 - hit) * torch.log(1 - opacity)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step:4d} loss {loss.item():.4f} mean opacity {opacity.mean().item():.3f}")
