"""Heteroscedastic two-task regression with one learned noise level per task."""
import torch
import torch.nn as nn

torch.manual_seed(12)
x = torch.rand(1600, 2) * 2 - 1
t1 = (x[:, 0] * 2).sin() + 0.05 * torch.randn(1600)
t2 = x[:, 0] * x[:, 1] + 0.03 * torch.randn(1600)
xt, yt = x[:1300], torch.stack([t1, t2], 1)[:1300]
xv, yv = x[1300:], torch.stack([t1, t2], 1)[1300:]
net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))
log_sigma = nn.Parameter(torch.zeros(2))
opt = torch.optim.Adam([{"params": net.parameters(), "lr": 4e-3}, {"params": [log_sigma], "lr": 2e-2}])
sched = torch.optim.lr_scheduler.MultiStepLR(opt, [15, 20], 0.3)


def total_loss(pred, y):
    return (0.5 * ((pred - y) / log_sigma.exp()) ** 2 + log_sigma).sum(1).mean()


for epoch in range(24):
    for idx in torch.randperm(1300).split(65):
        loss = total_loss(net(xt[idx]), yt[idx])
        opt.zero_grad(); loss.backward(); opt.step()
    sched.step()
    if epoch % 3 == 2:
        with torch.no_grad():
            pv = net(xv)
            print(f"epoch {epoch + 1} train {loss.item():.3f} val {total_loss(pv, yv).item():.3f} rmse {((pv - yv) ** 2).mean(0).sqrt().tolist()} sigma {log_sigma.exp().tolist()}")
