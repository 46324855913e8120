# Mixture density network for an inverse problem with several right answers (x from t = x + 0.3 sin 2 pi x).
# Mean squared error of the mean would be poor; we report the likelihood.
import math
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)


def sample(n):
    x = torch.rand(n, 1)
    t = x + 0.3 * torch.sin(2 * math.pi * x) + 0.02 * torch.randn(n, 1)
    return t, x


class MDN(nn.Module):
    def __init__(self, k=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.pi, self.mu, self.ls = nn.Linear(64, k), nn.Linear(64, k), nn.Linear(64, k)
        nn.init.uniform_(self.mu.bias, 0, 1)

    def forward(self, t):
        h = self.body(t)
        return torch.log_softmax(self.pi(h), 1), self.mu(h), self.ls(h).clamp(-6, 1)

    def nll(self, t, x):
        lp, mu, ls = self(t)
        comp = -0.5 * ((x - mu) / ls.exp()) ** 2 - ls - 0.5 * math.log(2 * math.pi)
        return -torch.logsumexp(lp + comp, 1).mean()


train_t, train_x = sample(5000)
test_t, test_x = sample(2000)
net = MDN()
opt = torch.optim.Adam(net.parameters(), 3e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 2500)
for step in range(2500):
    i = torch.randint(0, 5000, (256,))
    loss = net.nll(train_t[i], train_x[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 250 == 0:
        with torch.no_grad():
            print(f"{step:5d} train {loss.item():.3f} test {net.nll(test_t, test_x).item():.3f}")
with torch.no_grad():
    lp, mu, _ = net(test_t)
    # is the true x near one of the components that carry weight?
    hit = ((mu - test_x).abs() < 0.05) & (lp.exp() > 0.05)
    print(f"test nll {net.nll(test_t, test_x).item():.3f} (uniform: 0.000), true value near a mode {hit.any(1).float().mean():.3f}")
