import torch
import torch.nn as nn

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.25, momentum=0.9)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=50, T_mult=2, eta_min=1e-5)
w = torch.randn(10)
for step in range(350):
    x = torch.randn(64, 10)
    y = torch.sin(0.4 * (x @ w)).unsqueeze(1) + 0.05 * torch.randn(64, 1)
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    opt.step()
    sched.step()
    if step % 10 == 0:
        print(step, "lr %.4f" % opt.param_groups[0]["lr"], "loss %.4f" % loss.item())
