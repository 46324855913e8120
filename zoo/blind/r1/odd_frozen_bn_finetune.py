import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(26)


def task(n, shift):
    y = torch.randint(0, 3, (n,))
    x = torch.randn(n, 1, 8, 8)
    for c in range(3):
        x[y == c, 0, :, c * 2 + shift:c * 2 + shift + 2] += 1.5
    return x, y


net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))


def loop(x, y, steps, lr, bs):
    opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=lr, momentum=0.9)
    for s in range(steps):
        i = torch.randint(0, len(x), (bs,))
        loss = F.cross_entropy(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if s % 40 == 0 or s == steps - 1:
            print(s, f"{loss.item():.4f}")


net.train()
loop(*task(800, 0), 120, 0.03, 64)
# fine-tuning with tiny batches: batch norm stays in eval mode and its affine part is fixed, on purpose
net.eval()
for m in net.modules():
    if isinstance(m, nn.BatchNorm2d):
        m.weight.requires_grad_(False)
        m.bias.requires_grad_(False)
loop(*task(300, 1), 200, 0.01, 4)
xt, yt = task(300, 1)
print("accuracy", (net(xt).argmax(1) == yt).float().mean().item())
