# half-precision training with our own loss scale (the library scaler is not used in this code base)
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(19)


class LossScale:
    def __init__(self, init=2.0 ** 8, growth=2.0, every=12):
        self.value, self.growth, self.every, self.n = init, growth, every, 0

    def unscale(self, params):
        for p in params:
            if p.grad is not None:
                p.grad.div_(self.value)

    def tick(self):
        self.n += 1
        if self.n % self.every == 0:
            self.value *= self.growth


X = torch.randn(4000, 32, device=device)
Y = (X[:, :8].sum(1) + X[:, 8] * X[:, 9] * 2 > 0).long()
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
scale = LossScale()

for step in range(400):
    idx = torch.randint(0, 4000, (64,), device=device)
    with torch.autocast(device_type=device, dtype=torch.float16):
        out = net(X[idx])
    loss = F.cross_entropy(out.float(), Y[idx])
    opt.zero_grad(set_to_none=True)
    (loss * scale.value).backward()
    scale.unscale(net.parameters())
    opt.step()
    scale.tick()
    if step % 20 == 0:
        print(f"step {step:3d} loss {loss.item():.4f} scale {scale.value:.0f}")
