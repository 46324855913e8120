"""Evolution strategy: no backward at all, everything under no_grad; parameters move along the mean of scored perturbations."""
import torch

torch.set_num_threads(1)
torch.manual_seed(21)
IN, HID, OUT, POP = 4, 8, 1, 48
shapes = [(HID, IN), (HID,), (OUT, HID)]
size = sum(torch.Size(s).numel() for s in shapes)


@torch.no_grad()
def episode(theta, steps=120, seed=None):
    """pole on a cart, one row per candidate; score is the number of steps it stands"""
    n = theta.shape[0]
    a, b = HID * IN, HID * IN + HID
    w1, b1, w2 = theta[:, :a].view(n, HID, IN), theta[:, a:b], theta[:, b:].view(n, OUT, HID)
    g = torch.Generator().manual_seed(seed)
    s = (0.1 * torch.randn(1, 4, generator=g)).repeat(n, 1)
    alive, score = torch.ones(n, dtype=torch.bool), torch.zeros(n)
    for _ in range(steps):
        h = torch.tanh(torch.einsum("nhi,ni->nh", w1, s) + b1)
        f = 10 * torch.tanh(torch.einsum("noh,nh->no", w2, h)).squeeze(1)
        x, v, th, om = s.unbind(1)
        tmp = (f + 0.05 * om ** 2 * th.sin()) / 1.1
        acc = (9.8 * th.sin() - th.cos() * tmp) / (0.5 * (4 / 3 - 0.1 * th.cos() ** 2 / 1.1))
        xacc = tmp - 0.05 * acc * th.cos() / 1.1
        s = torch.stack([x + 0.04 * v, v + 0.04 * xacc, th + 0.04 * om, om + 0.04 * acc], 1)
        alive &= (s[:, 2].abs() < 0.35) & (s[:, 0].abs() < 2.4)
        score += alive.float()
    return score


theta = 0.1 * torch.randn(size)
SIGMA, LR = 0.15, 0.25
with torch.no_grad():
    for gen in range(30):
        noise = torch.randn(POP // 2, size)
        noise = torch.cat([noise, -noise])
        score = sum(episode(theta + SIGMA * noise, seed=3 * gen + k) for k in range(3)) / 3
        rank = score.argsort().argsort().float() / (POP - 1) - 0.5
        theta = theta + LR * (rank @ noise) / POP / SIGMA
        if gen % 3 == 2:
            test = sum(episode(theta[None], seed=9000 + k).item() for k in range(10)) / 10
            print(f"generation {gen:2d} population mean {score.mean():6.1f} best {score.max():5.1f} | held-out starts {test:6.1f} of 120")
