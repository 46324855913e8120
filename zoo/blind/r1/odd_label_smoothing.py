import torch
import torch.nn as nn

torch.manual_seed(12)
C = 10
centres = torch.randn(C, 20) * 1.5
y = torch.randint(0, C, (2400,))
x = centres[y] + torch.randn(2400, 20)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, C))
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.3)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=8)
for epoch in range(8):
    tot = 0.0
    for idx in torch.randperm(2000).split(50):
        opt.zero_grad()
        l = loss_fn(net(x[idx]), y[idx])
        l.backward()
        opt.step()
        tot += l.item() / 40
    sched.step()
    with torch.no_grad():
        acc = (net(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
    print(f"epoch {epoch} smoothed loss {tot:.4f} test acc {acc:.3f}")
