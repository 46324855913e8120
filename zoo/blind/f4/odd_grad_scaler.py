import torch
import torch.nn as nn

torch.manual_seed(2)
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 22, growth_interval=40)
w = torch.randn(32, 1)
for step in range(200):
    x = torch.randn(64, 32)
    y = x @ w + 0.2 * torch.sin(3 * x[:, :1])
    with torch.autocast("cpu", dtype=torch.float16):
        pred = net(x)
        loss = nn.functional.mse_loss(pred.float(), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    if step % 20 == 0:
        print(step, f"loss {loss.item():.4f} scale {scaler.get_scale():.0f}")
