"""Recolour a palette so that its distribution matches another one (entropic optimal transport)."""
import torch

torch.manual_seed(9)


def sinkhorn_cost(x, y, reg, iters=25):
    C = ((x[:, None, :] - y[None, :, :]) ** 2).sum(-1)
    K = torch.exp(-C / reg)
    a = torch.full((len(x),), 1.0 / len(x))
    b = torch.full((len(y),), 1.0 / len(y))
    v = torch.ones(len(y))
    for _ in range(iters):
        u = a / (K @ v)
        v = b / (K.t() @ u)
    P = u[:, None] * K * v[None, :]
    return (P * C).sum()


target = torch.cat([0.2 + 0.08 * torch.randn(60, 3), torch.tensor([0.8, 0.6, 0.3]) + 0.08 * torch.randn(60, 3)])
source = torch.rand(100, 3)
feats = torch.cat([source, source ** 2], 1)
net = torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.Tanh(), torch.nn.Linear(24, 3))
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
reg = 0.5
step = 0
while step < 240:
    cost = sinkhorn_cost(source + net(feats), target, reg)
    opt.zero_grad()
    cost.backward()
    opt.step()
    reg *= 0.965
    if step % 12 == 0:
        print("step", step, "reg %.5f" % reg, "cost", cost.item())
    step += 1
