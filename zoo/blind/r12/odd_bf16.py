# autocast to bfloat16 on CPU, float32 master weights
import torch, torch.nn as nn
from sklearn.datasets import load_digits
torch.manual_seed(0)
d = load_digits(); X = torch.tensor(d.images / 16., dtype=torch.float32)[:, None]; Y = torch.tensor(d.target)
p = torch.randperm(len(X)); X, Y = X[p], Y[p]
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 10))
opt = torch.optim.AdamW(net.parameters(), 1e-3, weight_decay=1e-2)
for ep in range(1, 17):
    net.train(); s = 0.
    for b in torch.randperm(1400).split(50):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(X[b])
        loss = nn.functional.cross_entropy(out.float(), Y[b])
        opt.zero_grad(); loss.backward(); opt.step(); s += loss.item() * len(b)
    net.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        acc = (net(X[1400:]).argmax(1) == Y[1400:]).float().mean()
    print(f"epoch {ep} loss {s/1400:.4f} val acc {acc:.4f} (logits {out.dtype}, weights {net[1].weight.dtype})")
