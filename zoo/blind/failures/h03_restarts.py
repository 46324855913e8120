import math
import torch
import torch.nn as nn

torch.manual_seed(10)
x = torch.linspace(-3, 3, 512).unsqueeze(1)
y = torch.sin(3 * x) * torch.exp(-0.1 * x ** 2) + 0.02 * torch.randn_like(x)
net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-2)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=120, eta_min=1e-5)
history = []
for step in range(480):
    k = torch.randint(0, 512, (64,))
    loss = nn.functional.mse_loss(net(x[k]), y[k])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    history.append(loss.item())
    if step % 15 == 0:
        print(f"step {step:3d} lr {opt.param_groups[0]['lr']:.5f} mse {sum(history[-5:]) / len(history[-5:]):.5f}")
