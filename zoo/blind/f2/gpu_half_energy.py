import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Energy(nn.Module):
    """scores a frame sequence by the energy of its filtered signal"""

    def __init__(self, n_in=32, n_filters=64, n_cls=3):
        super().__init__()
        self.filters = nn.Linear(n_in, n_filters)
        self.norm = nn.BatchNorm1d(n_filters)
        self.cls = nn.Linear(n_filters, n_cls)

    def forward(self, x):
        h = self.filters(x)
        power = h * h
        feat = torch.log1p(power.float())
        return self.cls(self.norm(feat))


def recordings(n, gen):
    y = torch.randint(0, 3, (n,), generator=gen)
    t = torch.linspace(0, 6.28, 32)
    x = torch.sin(t * (y[:, None] + 1).float()) + 0.3 * torch.randn(n, 32, generator=gen)
    gain = torch.exp(torch.randn(n, 1, generator=gen))
    return x * gain, y


gen = torch.Generator().manual_seed(0)
X, Y = recordings(6400, gen)
X[3911] = 2500.0 * torch.sign(X[3911])
net = Energy().to(device)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)

for step in range(200):
    sl = slice(step * 32, (step + 1) * 32)
    xb, yb = X[sl].to(device), Y[sl].to(device)
    with torch.autocast(device, dtype=torch.float16):
        logits = net(xb)
        loss = F.cross_entropy(logits.float(), yb)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 20 == 0:
        acc = (logits.argmax(1) == yb).float().mean().item()
        print(f"{step:4d}  loss {loss.item():.4f}  acc {acc:.2f}")
