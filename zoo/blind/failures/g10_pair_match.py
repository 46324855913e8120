"""Two-tower matching of items and captions with an annealed temperature."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(12)


class Towers(nn.Module):
    def __init__(self, a=20, b=30, d=24):
        super().__init__()
        self.item = nn.Sequential(nn.Linear(a, 64), nn.ReLU(), nn.Linear(64, d))
        self.text = nn.Sequential(nn.Linear(b, 64), nn.ReLU(), nn.Linear(64, d))

    def forward(self, x, y):
        u = F.normalize(self.item(x), dim=-1)
        v = F.normalize(self.text(y), dim=-1)
        return u @ v.t()


def info_nce(sim):
    e = torch.exp(sim)
    pos = torch.diagonal(e)
    return -0.5 * (torch.log(pos / e.sum(0)) + torch.log(pos / e.sum(1))).mean()


concept = torch.randn(2000, 10)
items = torch.tanh(concept @ torch.randn(10, 20)).to(device)
texts = (concept @ torch.randn(10, 30)).to(device)

model = Towers().to(device)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler(device, init_scale=1024.0)
for step in range(350):
    tau = 0.4 * 0.984 ** step
    i = torch.randint(0, 2000, (24,), device=device)
    with torch.autocast(device, dtype=torch.float16):
        sim = model(items[i], texts[i])
    loss = info_nce(sim.float() / tau)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    if step % 15 == 0:
        print(f"{step} loss {loss.item():.4f} tau {tau:.4f}")
