import math
import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(8)


class WindMDN(nn.Module):
    def __init__(self, k=5):
        super().__init__()
        self.k = k
        self.body = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 3 * k))

    def forward(self, x):
        logit, mu, log_s = self.body(x).float().chunk(3, -1)
        return logit.log_softmax(-1), mu, log_s.clamp(-5, 4)


def nll(log_pi, mu, log_s, y):
    z = (y[:, None] - mu) * torch.exp(-log_s)
    comp = log_pi - 0.5 * z ** 2 - log_s - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(comp, -1).mean()


x = torch.randn(3000, 3)
gust = (torch.rand(3000) < 0.2).float()
y = x[:, 0] + gust * torch.exp(0.5 + 0.5 * x[:, 1]) * torch.randn(3000).abs() + 0.1 * torch.randn(3000)
y = torch.where(torch.rand(3000) < 0.003, y * 8, y)
x, y = x.to(device), y.to(device)

net = WindMDN().to(device)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(350):
    i = torch.randint(0, 3000, (96,), device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        out = net(x[i])
    loss = nll(*out, y[i])
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    opt.step()
    if step % 25 == 0:
        print(f"{step:4d} nll {loss.item():.4f}")
