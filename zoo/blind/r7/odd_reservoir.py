"""Echo state network: the recurrent part is random and never trained, only the readout learns."""
import torch
import torch.nn as nn

torch.manual_seed(3)
torch.set_num_threads(1)


def henon(n, a=1.4, b=0.3):
    x, y, out = 0.1, 0.1, []
    for _ in range(n + 100):
        x, y = 1 - a * x * x + y, b * x
        out.append(x)
    return torch.tensor(out[100:])


series = henon(2400)
UNITS, WASH = 200, 100


class Reservoir(nn.Module):
    def __init__(self):
        super().__init__()
        w = torch.randn(UNITS, UNITS) * (torch.rand(UNITS, UNITS) < 0.1)
        radius = torch.linalg.eigvals(w).abs().max()
        self.w = nn.Parameter(0.4 * w / radius, requires_grad=False)
        self.w_in = nn.Parameter(torch.rand(UNITS, 1) * 1.0 - 0.5, requires_grad=False)
        self.b = nn.Parameter(torch.rand(UNITS) - 0.5, requires_grad=False)
        self.readout = nn.Linear(UNITS, 1)

    @torch.no_grad()
    def states(self, u):
        h, out = torch.zeros(UNITS), []
        for value in u:
            h = torch.tanh(self.w @ h + self.w_in[:, 0] * value + self.b)
            out.append(h)
        return torch.stack(out)


net = Reservoir()
h = net.states(series[:-1])[WASH:]
y = series[1:][WASH:, None]
cut1, cut2 = 1500, 1900
mean, std = h[:cut1].mean(0), h[:cut1].std(0)
h = (h - mean) / std
train, val, test = (h[:cut1], y[:cut1]), (h[cut1:cut2], y[cut1:cut2]), (h[cut2:], y[cut2:])

opt = torch.optim.Adam(net.readout.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=30)
for epoch in range(30):
    perm = torch.randperm(cut1)
    total = 0.0
    for i in range(0, cut1, 50):
        rows = perm[i:i + 50]
        loss = (net.readout(train[0][rows]) - train[1][rows]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    sched.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            v = (net.readout(val[0]) - val[1]).pow(2).mean().item()
        print(f"epoch {epoch:2d} train mse {total / cut1:.6f} val mse {v:.6f}")

with torch.no_grad():
    t = (net.readout(test[0]) - test[1]).pow(2).mean().item()
trainable = sum(p.numel() for p in net.parameters() if p.requires_grad)
print(f"trainable {trainable} of {sum(p.numel() for p in net.parameters())}")
print(f"test mse {t:.6f} normalised {t / y.var().item():.6f}")
