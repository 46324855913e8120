"""Heteroscedastic Gaussian likelihood on small-valued targets: the loss is negative and keeps falling below zero."""
import torch
import torch.nn as nn

torch.manual_seed(2)
torch.set_num_threads(1)


def make(n):
    x = torch.rand(n, 2) * 2 - 1
    sigma = 0.002 + 0.01 * x[:, 1:].abs()
    y = 0.05 * torch.sin(4 * x[:, :1]) + sigma * torch.randn(n, 1)
    return x, y, sigma


x_train, y_train, _ = make(3000)
x_val, y_val, s_val = make(800)
x_test, y_test, s_test = make(800)


class MeanScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.mean = nn.Linear(64, 1)
        self.log_scale = nn.Linear(64, 1)
        # start near the spread of the targets
        nn.init.constant_(self.log_scale.bias, -3.0)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_scale(h).clamp(-9, 3)


def nll(mean, log_scale, y):
    return (log_scale + 0.5 * ((y - mean) / log_scale.exp()).pow(2) + 0.9189).mean()


net = MeanScale()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=25)
for epoch in range(25):
    net.train()
    perm = torch.randperm(len(x_train))
    total = 0.0
    for i in range(0, len(perm), 100):
        rows = perm[i:i + 100]
        loss = nll(*net(x_train[rows]), y_train[rows])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        total += loss.item() * len(rows)
    sched.step()
    if epoch % 3 == 0:
        net.eval()
        with torch.no_grad():
            print(f"epoch {epoch:2d} train nll {total / len(perm):.4f} val nll {nll(*net(x_val), y_val).item():.4f}")

net.eval()
with torch.no_grad():
    mean, log_scale = net(x_test)
    best = nll(0.05 * torch.sin(4 * x_test[:, :1]), s_test.log(), y_test).item()
    z = (y_test - mean) / log_scale.exp()
    print(f"test nll {nll(mean, log_scale, y_test).item():.4f} best possible {best:.4f} z std {z.std().item():.3f}")
    print(f"scale correlation {torch.corrcoef(torch.stack([log_scale.exp()[:, 0], s_test[:, 0]]))[0, 1].item():.3f}")
