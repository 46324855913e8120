"""MC dropout regression: prediction is made with dropout ON (model.train()) and averaged over 40 passes."""
import torch, torch.nn as nn
torch.manual_seed(3)
f = lambda x: torch.sin(2 * x) + 0.3 * x
x = torch.rand(600, 1) * 5 - 2.5; y = f(x) + 0.1 * torch.randn_like(x)
xt, yt, xv, yv = x[:480], y[:480], x[480:], y[480:]
xo = torch.rand(120, 1) * 2 + 4.5      # outside of the training range
net = nn.Sequential(nn.Linear(1, 96), nn.ReLU(), nn.Dropout(0.05), nn.Linear(96, 96), nn.ReLU(), nn.Dropout(0.05), nn.Linear(96, 1))
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 200)
def mc(x, n=40):
    net.train()
    with torch.no_grad():
        s = torch.stack([net(x) for _ in range(n)])
    return s.mean(0), s.std(0)
for ep in range(1, 201):
    for b in torch.randperm(480).split(60):
        opt.zero_grad(); loss = nn.functional.mse_loss(net(xt[b]), yt[b]); loss.backward(); opt.step()
    sched.step()
    if ep % 25 == 0:
        m, s = mc(xv); _, so = mc(xo)
        print(f"epoch {ep} train mse {loss.item():.4f} | MC val rmse {(m-yv).pow(2).mean().sqrt():.4f} std in range {s.mean():.3f} out of range {so.mean():.3f}")
