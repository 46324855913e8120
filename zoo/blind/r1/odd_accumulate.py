import torch
from torch import nn

torch.manual_seed(23)
micro, accum = 4, 16
x = torch.randn(1280, 20)
y = torch.tanh(x @ torch.randn(20, 3) * 0.4)
net = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 3))
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
updates = 0
for epoch in range(4):
    order = torch.randperm(len(x))
    opt.zero_grad()
    tot = 0.0
    for k, idx in enumerate(order.split(micro)):
        loss = nn.functional.mse_loss(net(x[idx]), y[idx]) / accum
        loss.backward()
        tot += loss.item() * accum
        if (k + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
            updates += 1
    print(f"epoch {epoch} mse {tot / (k + 1):.4f} after {updates} updates")
