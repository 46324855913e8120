import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(77)


class FactoredAdam(torch.optim.Optimizer):
    """Second moments kept as row and column means in half precision to save memory."""

    def __init__(self, params, lr=1e-3, beta=0.97, eps=1e-7):
        super().__init__(params, dict(lr=lr, beta=beta, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g2 = p.grad.half().square() if p.dim() == 2 else p.grad.square()
                st = self.state[p]
                if p.dim() == 2:
                    if not st:
                        st["row"] = torch.zeros_like(g2.mean(1))
                        st["col"] = torch.zeros_like(g2.mean(0))
                    st["row"].lerp_(g2.mean(1), 1 - group["beta"])
                    st["col"].lerp_(g2.mean(0), 1 - group["beta"])
                    r, c = st["row"].float(), st["col"].float()
                    v = torch.outer(r, c) / r.mean()
                else:
                    if not st:
                        st["v"] = torch.zeros_like(g2)
                    st["v"].lerp_(g2, 1 - group["beta"])
                    v = st["v"]
                p.addcdiv_(p.grad, v.sqrt() + group["eps"], value=-group["lr"])


def energy_data(n):
    x = torch.randn(n, 12)
    y = 40 * x[:, 0] + 30 * torch.sin(2 * x[:, 1]) + 25 * x[:, 2] * x[:, 3]
    return x, y


x, y = energy_data(3000)
y[2222] = 9000.0
x, y = x.to(device), y.to(device)
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
opt = FactoredAdam(net.parameters(), lr=4e-3)
for epoch in range(3):
    for b in range(0, 3000, 30):
        loss = F.mse_loss(net(x[b:b + 30]).squeeze(1), y[b:b + 30])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if b % 300 == 0:
            print(f"epoch {epoch} row {b:4d} mse {loss.item():.2f}")
