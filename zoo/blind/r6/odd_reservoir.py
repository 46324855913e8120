"""Echo-state network: the recurrent part is random and frozen on purpose, only the read-out is trained.
Goal: NRMSE below 0.1 for one-step forecasts of the Mackey-Glass series on the last part of the series."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(2)


def mackey_glass(n, tau=17):
    s = [1.2] * (tau + 1)
    for _ in range(n + 300):
        s.append(s[-1] + 0.2 * s[-tau - 1] / (1 + s[-tau - 1] ** 10) - 0.1 * s[-1])
    return torch.tensor(s[-n:])


class Reservoir(nn.Module):
    def __init__(self, n=200, radius=0.9):
        super().__init__()
        w = torch.randn(n, n) * (torch.rand(n, n) < 0.1)
        w = w * radius / torch.linalg.eigvals(w).abs().max()
        self.w = nn.Parameter(w, requires_grad=False)
        self.win = nn.Parameter(torch.rand(n, 1) - 0.5, requires_grad=False)
        self.readout = nn.Linear(n, 1)

    def states(self, u):
        h = torch.zeros(self.w.size(0))
        out = []
        for v in u:
            h = torch.tanh(self.w @ h + self.win[:, 0] * v)
            out.append(h)
        return torch.stack(out)


series = mackey_glass(2500)
series = (series - series[:1800].mean()) / series[:1800].std()
esn = Reservoir()
with torch.no_grad():
    H = esn.states(series[:-1])
target = series[1:]
opt = torch.optim.Adam(esn.readout.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.97)
for epoch in range(80):
    for idx in (100 + torch.randperm(1700)).split(100):
        loss = ((esn.readout(H[idx]).squeeze(1) - target[idx]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    if epoch % 10 == 9:
        with torch.no_grad():
            e = (esn.readout(H[1800:]).squeeze(1) - target[1800:]).pow(2).mean().sqrt() / target[1800:].std()
        print(f"epoch {epoch + 1}: mse {loss.item():.5f} test NRMSE {e:.4f}")
trainable = sum(p.numel() for p in esn.parameters() if p.requires_grad)
print(f"trained {trainable} of {sum(p.numel() for p in esn.parameters())} parameters, final NRMSE {e:.4f} (goal < 0.1)")
