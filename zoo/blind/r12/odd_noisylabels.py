"""40 % of the training labels are random; loss must stay high, clean test accuracy is what counts."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
C = 4
centers = torch.randn(C, 16) * 1.3
y = torch.randint(0, C, (9000,))
x = centers[y] + torch.randn(9000, 16)
ytr = y[:8000].clone()
flip = torch.rand(8000) < 0.4
ytr[flip] = torch.randint(0, C, (int(flip.sum()),))
model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, C))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
p_true, p_other = 0.7, 0.1
floor = -(p_true * math.log(p_true) + 3 * p_other * math.log(p_other))
print(f"entropy of the noisy labels: {floor:.3f} nats, train accuracy can be at most about {p_true:.2f}")
for ep in range(12):
    model.train()
    perm = torch.randperm(8000)
    tot = 0.0
    for i in range(0, 8000, 64):
        idx = perm[i:i + 64]
        loss = F.cross_entropy(model(x[idx]), ytr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() / 125
    model.eval()
    with torch.no_grad():
        out = model(x[8000:])
        acc = (out.argmax(1) == y[8000:]).float().mean()
        tacc = (model(x[:8000]).argmax(1) == ytr).float().mean()
    print(f"epoch {ep} loss {tot:.4f} noisy train acc {tacc:.3f} clean test acc {acc:.3f}")
