"""Monte-Carlo dropout: dropout stays ON in evaluation on purpose; predictions are averaged over 50 stochastic passes.
Goal: the 95% interval (epistemic + noise) covers 90..99% of test points and is wider outside the training range."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(27)


class MCNet(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(1, 128), nn.Linear(128, 128), nn.Linear(128, 1)
        self.log_noise = nn.Parameter(torch.zeros(1))
        self.p = p

    def forward(self, x):
        h = F.dropout(F.relu(self.a(x)), self.p, training=True)
        h = F.dropout(F.relu(self.b(h)), self.p, training=True)
        return self.c(h)


def f(n, lo, hi):
    x = torch.rand(n, 1) * (hi - lo) + lo
    return x, torch.sin(3 * x) + 0.3 * x + 0.25 * torch.randn(n, 1)


x, y = f(1500, -2, 2)
xt, yt = f(1000, -2, 2)
net = MCNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(60):
    for idx in torch.randperm(1500).split(100):
        loss = (0.5 * (net(x[idx]) - y[idx]).pow(2) * torch.exp(-2 * net.log_noise) + net.log_noise).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1} nll {loss.item():.4f} learned noise sd {net.log_noise.exp().item():.3f}")


@torch.no_grad()
def predict(x, passes=50):
    net.eval()
    s = torch.stack([net(x) for _ in range(passes)])
    return s.mean(0), (s.var(0) + torch.exp(2 * net.log_noise)).sqrt(), s.std(0)


m, sd, _ = predict(xt)
inside = ((yt - m).abs() < 1.96 * sd).float().mean().item()
far = predict(torch.linspace(4, 5, 100).unsqueeze(1))[2].mean().item()
near = predict(xt)[2].mean().item()
print(f"test rmse {(m - yt).pow(2).mean().sqrt():.3f}, coverage {inside:.3f}, epistemic sd inside {near:.3f}, outside {far:.3f}")
