import torch
import torch.nn as nn


class SignedRoot(torch.autograd.Function):
    """sign(x) * sqrt(|x|), compresses large activations"""

    @staticmethod
    def forward(ctx, x):
        out = torch.sign(x) * torch.sqrt(torch.abs(x))
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return 0.5 * grad / torch.abs(out)


class Compress(nn.Module):
    def forward(self, x):
        return SignedRoot.apply(x)


def spectra(n, gen):
    """counts per channel -> abundance of 2 elements"""
    amount = torch.rand(n, 2, generator=gen) * 30 + 5
    tmpl = torch.tensor([[1.0, 3, 5, 3, 1, 0.5, 0.3, 0.2], [0.2, 0.3, 0.5, 1, 2, 4, 5, 2]])
    counts = torch.poisson(amount @ tmpl, generator=gen)
    return counts, amount / 10


def main():
    torch.manual_seed(12)
    gen = torch.Generator().manual_seed(12)
    x, y = spectra(3000, gen)
    background = 1.0
    x = x - background
    blank = 1875
    x[blank] = 0.0
    y[blank] = 0.0
    model = nn.Sequential(nn.Linear(8, 16, bias=False), Compress(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    bs = 15
    for step in range(len(x) // bs):
        xb, yb = x[step * bs:(step + 1) * bs], y[step * bs:(step + 1) * bs]
        loss = (model(xb) - yb).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step:3d} mae {loss.item():.4f}")


main()
