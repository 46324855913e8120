import torch
from torch import nn
from torch.optim import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                st = self.state[p]
                if not st:
                    st["m"] = torch.zeros_like(p)
                m = st["m"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(torch.sign(b1 * m + (1 - b1) * p.grad), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


torch.manual_seed(7)
text = ("to be or not to be that is the question " * 60)
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])
ctx = 8
X = data.unfold(0, ctx + 1, 1)
net = nn.Sequential(nn.Embedding(len(chars), 12), nn.Flatten(), nn.Linear(ctx * 12, 64), nn.ReLU(), nn.Linear(64, len(chars)))
opt = Lion(net.parameters(), lr=2e-3, weight_decay=0.05)
for it in range(300):
    b = X[torch.randint(0, len(X), (64,))]
    loss = nn.functional.cross_entropy(net(b[:, :ctx]), b[:, ctx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 0 or it == 299:
        print(f"iter {it}: {loss.item():.4f}")
