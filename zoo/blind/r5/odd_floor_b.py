# Heteroscedastic regression in which the signal is a small part of the variance: the loss can barely fall.
import math
import torch
from torch import nn

torch.manual_seed(12)
torch.set_num_threads(1)
N = 20000
x = torch.rand(N, 3) * 2 - 1
true_mean = 0.3 * torch.sin(3 * x[:, 0]) + 0.2 * x[:, 1]
true_sd = 0.8 + 0.4 * x[:, 2]
y = true_mean + true_sd * torch.randn(N)
floor = (0.5 * math.log(2 * math.pi * math.e) + true_sd.log()).mean().item()

net = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 1000)
avg = None
for it in range(1, 1001):
    i = torch.randint(0, N, (200,))
    m, s = net(x[i]).unbind(1)
    loss = (0.5 * math.log(2 * math.pi) + s + 0.5 * ((y[i] - m) / s.exp()) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    avg = loss.item() if avg is None else 0.98 * avg + 0.02 * loss.item()
    if it % 125 == 0:
        with torch.no_grad():
            g = torch.rand(4000, 3) * 2 - 1
            m, s = net(g).unbind(1)
            cm = torch.corrcoef(torch.stack([m, 0.3 * torch.sin(3 * g[:, 0]) + 0.2 * g[:, 1]]))[0, 1]
            cs = torch.corrcoef(torch.stack([s.exp(), 0.8 + 0.4 * g[:, 2]]))[0, 1]
        print(f"it {it:4d}  nll {avg:.4f} (floor {floor:.4f})  corr with true mean {cm:.3f}  with true sd {cs:.3f}")
print(f"final corr with true mean {cm:.3f}, with true sd {cs:.3f}")
