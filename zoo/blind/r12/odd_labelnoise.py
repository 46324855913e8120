# 35 % of the training labels are replaced at random (known crowd noise); the test labels are clean.
# The training loss cannot fall below the entropy of the noise.
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
C, D = 6, 20
centers = torch.randn(C, D) * 1.1
def make(n):
    y = torch.randint(0, C, (n,)); return centers[y] + torch.randn(n, D), y
Xt, Yc = make(6000); Xv, Yv = make(1000)
flip = torch.rand(6000) < 0.35
Yt = torch.where(flip, torch.randint(0, C, (6000,)), Yc)
net = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, C))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
print(f"observed label agreement with truth {(Yt==Yc).float().mean():.3f}")
for ep in range(1, 31):
    net.train(); s = 0.
    for b in torch.randperm(6000).split(100):
        loss = F.cross_entropy(net(Xt[b]), Yt[b]); opt.zero_grad(); loss.backward(); opt.step(); s += loss.item() * len(b)
    if ep % 3 == 0:
        net.eval()
        with torch.no_grad():
            print(f"epoch {ep} train loss {s/6000:.3f} noisy train acc {(net(Xt).argmax(1)==Yt).float().mean():.3f} clean test acc {(net(Xv).argmax(1)==Yv).float().mean():.3f}")
