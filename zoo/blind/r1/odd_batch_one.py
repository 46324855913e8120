"""Online learning: one sample at a time, as it arrives."""
import random
import torch

torch.manual_seed(9)
random.seed(9)
W = torch.randn(6)


def stream():
    while True:
        x = torch.randn(6)
        yield x, (x @ W + x[1].abs() + 0.2 * torch.randn(())).reshape(1)


net = torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.ReLU(), torch.nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
ema = None
for n, (x, y) in enumerate(stream(), 1):
    loss = (net(x) - y).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema = loss.item() if ema is None else 0.99 * ema + 0.01 * loss.item()
    if n in (20, 100) or n % 400 == 0:
        print(f"{n} samples, last {loss.item():.3f}, smoothed {ema:.3f}")
    if n == 2400:
        break
