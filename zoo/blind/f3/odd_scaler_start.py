import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
x = torch.randn(1600, 20)
y = (x[:, :5].sum(1) * x[:, 5] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 30)

for epoch in range(6):
    total, right = 0.0, 0
    for xb, yb in loader:
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = net(xb)
            loss = nn.functional.cross_entropy(out.float(), yb)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        total += loss.item()
        right += (out.argmax(1) == yb).sum().item()
    print(f"epoch {epoch} loss {total / len(loader):.4f} acc {right / 1600:.3f} scale {scaler.get_scale():.0f}")
