import torch
import torch.nn as nn

torch.manual_seed(15)


class Enhance(nn.Module):
    """Denoise with two convolutions, then apply a learned tone curve per channel."""

    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 12, 3, padding=1)
        self.c2 = nn.Conv2d(12, 3, 3, padding=1)
        self.gamma = nn.Parameter(torch.full((1, 3, 1, 1), 1.5))
        self.gain = nn.Parameter(torch.ones(1, 3, 1, 1))
        r = torch.linspace(-1, 1, 16)
        self.register_buffer("lens", (r[:, None] ** 2 + r[None, :] ** 2 < 1.3).float())

    def forward(self, x):
        h = torch.relu(x + self.c2(torch.relu(self.c1(x))))
        return self.gain * (h * self.lens) ** self.gamma


def scene(n):
    low = torch.rand(n, 3, 4, 4)
    clean = nn.functional.interpolate(low, size=16, mode="bilinear", align_corners=False)
    clean = (clean - 0.25).clamp(min=0)
    dark = clean ** 1.8
    return dark + 0.02 * torch.randn_like(dark), clean * net.lens


net = Enhance()
opt = torch.optim.Adam([{"params": [net.c1.weight, net.c1.bias, net.c2.weight, net.c2.bias], "lr": 1e-3},
                        {"params": [net.gamma, net.gain], "lr": 1.2e-2}])
for it in range(250):
    noisy, clean = scene(10)
    loss = ((net(noisy) - clean) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 15 == 0:
        print(f"it {it} mse {loss.item():.5f} gamma {[round(v, 3) for v in net.gamma.flatten().tolist()]}")
