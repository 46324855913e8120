import torch
import torch.nn as nn

torch.manual_seed(7)
N = 6400
X = torch.randn(N, 12)
y = torch.exp(0.6 * X[:, 0] - 0.2 * X[:, 3]) + 0.05 * torch.rand(N)
X[3111, 5] = float("inf")                               # a broken sensor reading
X[5050, 2] = float("nan")

net = nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
skipped = 0
order = torch.randperm(N)
for k in range(N // 32):
    idx = order[k * 32:(k + 1) * 32]
    loss = nn.functional.gaussian_nll_loss(net(X[idx]).squeeze(1), y[idx], torch.full((32,), 0.2))
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    if torch.isfinite(norm):
        opt.step()
    else:
        skipped += 1
    if k % 20 == 0:
        print(k, loss.item(), "skipped", skipped)
