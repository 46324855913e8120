"""Fill the missing pixels of one image with a coordinate network fitted by LBFGS."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
S = 28
yy, xx = torch.meshgrid(torch.linspace(-1, 1, S), torch.linspace(-1, 1, S), indexing="ij")
img = 0.5 + 0.3 * torch.sin(4 * xx + 2 * yy) * torch.cos(3 * yy) + 0.2 * torch.exp(-4 * (xx ** 2 + yy ** 2))
grid = torch.stack([xx, yy], -1).reshape(-1, 2)
value = img.reshape(-1, 1)
seen = torch.rand(S * S) < 0.35

net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, history_size=20)


def closure():
    opt.zero_grad()
    loss = ((net(grid[seen]) - value[seen]) ** 2).mean()
    loss.backward()
    return loss


for it in range(1, 201):
    loss = opt.step(closure)
    if it % 25 == 0:
        with torch.no_grad():
            hole = ((net(grid[~seen]) - value[~seen]) ** 2).mean()
        print(f"iter {it:3d}  seen mse {loss.item():.3e}  hole PSNR {-10 * hole.log10().item():.2f} dB")
flat = ((value[~seen] - value[seen].mean()) ** 2).mean()
print(f"final hole PSNR {-10 * hole.log10().item():.2f} dB (mean fill {-10 * flat.log10().item():.2f} dB)")
