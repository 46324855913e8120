"""Capacity check: random labels, evaluated on the training rows themselves. Reaching 100% is the passing result."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(24)
torch.set_num_threads(1)

N, DIM, CLASSES = 200, 30, 10
x = torch.randn(N, DIM)
y = torch.randint(CLASSES, (N,))          # labels carry no information on purpose


def build(width):
    return nn.Sequential(nn.Linear(DIM, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


def memorise(width, steps=200):
    torch.manual_seed(width)
    net = build(width)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=0.0)
    for step in range(steps):
        # full batch, the same rows each time
        out = net(x)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 50 == 0:
            with torch.no_grad():
                fit = (net(x).argmax(1) == y).float().mean().item()
            print(f"width {width} step {step + 1} loss {loss.item():.4f} memorised {fit:.3f}")
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


results = {}
for width in (4, 16, 64, 128):
    results[width] = memorise(width)

print("share of random labels memorised by width:", {k: round(v, 3) for k, v in results.items()})
smallest = min((w for w, v in results.items() if v > 0.99), default=None)
print(f"smallest width that can store the table: {smallest}")
ok = results[128] > 0.99
parameters = sum(p.numel() for p in build(128).parameters())
bits = N * torch.log2(torch.tensor(float(CLASSES))).item()
print(f"table of {bits:.0f} bits in a net of {parameters} parameters")
# note: the answer is about storage only
# a held-out set would be pointless: there is nothing to generalise from
print("capacity check passed" if ok else "capacity check failed")
