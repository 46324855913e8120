"""Echo-state network on the Mackey-Glass series: a fixed random recurrent net, only the linear read-out is trained."""
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(2)


def mackey_glass(n, tau=17, dt=1.0):
    h = [1.2 + 0.1 * torch.rand(1).item() for _ in range(tau + 1)]
    for _ in range(n + 300):
        h.append(h[-1] + dt * (0.2 * h[-tau - 1] / (1 + h[-tau - 1] ** 10) - 0.1 * h[-1]))
    return torch.tensor(h[-n:])


class Reservoir(nn.Module):
    def __init__(self, size=300, radius=0.95, leak=0.5):
        super().__init__()
        w = torch.randn(size, size) * (torch.rand(size, size) < 0.05)
        w *= radius / torch.linalg.eigvals(w).abs().max()
        self.w = nn.Parameter(w, requires_grad=False)
        self.w_in = nn.Parameter(torch.rand(size, 2) - 0.5, requires_grad=False)
        self.leak = leak
        self.readout = nn.Linear(size, 1)

    @torch.no_grad()
    def states(self, u):
        h = torch.zeros(self.w.shape[0])
        out = []
        for v in u:
            pre = self.w @ h + self.w_in @ torch.stack([v, torch.ones(())])
            h = (1 - self.leak) * h + self.leak * torch.tanh(pre)
            out.append(h)
        return torch.stack(out)

    def forward(self, h):
        return self.readout(h).squeeze(-1)


AHEAD = 6
series = mackey_glass(5200) - 0.9
model = Reservoir()
states = model.states(series)
H, Y = states[200:-AHEAD], series[200 + AHEAD:]
mu, sd = H[:3500].mean(0), H[:3500].std(0) + 1e-6
H = (H - mu) / sd
H_tr, Y_tr, H_te, Y_te = H[:3500], Y[:3500], H[3600:], Y[3600:]
trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
print(f"{sum(p.numel() for p in model.parameters())} parameters, {trainable} trained; {AHEAD} steps ahead")

opt = torch.optim.Adam(model.readout.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.94)
for epoch in range(60):
    total = 0.0
    for idx in torch.randperm(len(H_tr)).split(50):
        loss = (model(H_tr[idx]) - Y_tr[idx]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    sched.step()
    if epoch % 6 == 0 or epoch == 59:
        with torch.no_grad():
            nrmse = ((model(H_te) - Y_te).pow(2).mean() / Y_te.var()).sqrt()
        print(f"epoch {epoch:2d} train mse {total / len(H_tr):.3e}  test NRMSE {nrmse:.4f}")
with torch.no_grad():
    persist = ((series[3800:-AHEAD] - series[3800 + AHEAD:]).pow(2).mean() / Y_te.var()).sqrt()
print(f"persistence NRMSE {persist:.4f}")
