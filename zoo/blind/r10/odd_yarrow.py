"""Second-order training: full-batch L-BFGS with a line search, no schedule, no batches, forward pass inside a closure."""
import time

import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
torch.manual_seed(13)


def circuit(n, seed):
    """Impedance of a damped oscillator as a function of four settings, measured with little noise."""
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 4, generator=g) * 2 - 1
    w, damp = 1.2 + 0.6 * x[:, 0], 0.35 + 0.15 * x[:, 1]
    f = 1.3 + 0.9 * x[:, 2]
    gain = (1 + 0.3 * x[:, 3]) / ((w ** 2 - f ** 2) ** 2 + (damp * f) ** 2).sqrt()
    return x, gain.log().unsqueeze(1) + 0.01 * torch.randn(n, 1, generator=g)


x, y = circuit(1200, 1)
xv, yv = circuit(500, 2)
xt, yt = circuit(1000, 3)
mean, std = y.mean(), y.std()


def build():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


def loss_of(net, x, y):
    return (net(x) - (y - mean) / std).pow(2).mean()


def rmse(net, x, y):
    with torch.no_grad():
        return loss_of(net, x, y).sqrt().item() * std.item()


def with_adam(evaluations):
    net = build()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(evaluations):
        opt.zero_grad()
        loss_of(net, x, y).backward()
        opt.step()
    return net


net = build()
opt = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=10, history_size=30, line_search_fn="strong_wolfe",
                        tolerance_grad=1e-9, tolerance_change=1e-12)
ridge, evaluations, start = 1e-6, 0, time.time()


def closure():
    global evaluations
    evaluations += 1
    opt.zero_grad()
    loss = loss_of(net, x, y) + ridge * sum(p.pow(2).sum() for p in net.parameters())
    loss.backward()
    return loss


best, state = float("inf"), None
for it in range(1, 61):
    loss = opt.step(closure)  # value at the start of the step
    v = rmse(net, xv, yv)
    if v < best:
        best, state = v, {k: p.clone() for k, p in net.state_dict().items()}
    if it % 6 == 0:
        print(f"outer step {it:3d}  loss {loss.item():.3e}  evaluations {evaluations:4d}  val rmse {v:.4f}  "
              f"({time.time() - start:.1f}s)")
net.load_state_dict(state)
adam = with_adam(evaluations)
print(f"test rmse: L-BFGS {rmse(net, xt, yt):.4f}  Adam with as many evaluations {rmse(adam, xt, yt):.4f}  "
      f"spread of targets {yt.std().item():.3f}  measurement noise 0.010")
