import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(8)


class PairDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left, right):
        delta = left - right
        dist = delta.pow(2).sum(1).sqrt()
        ctx.save_for_backward(delta, dist)
        return dist

    @staticmethod
    def backward(ctx, grad):
        delta, dist = ctx.saved_tensors
        direction = delta / dist.unsqueeze(1)
        g = grad.unsqueeze(1) * direction
        return g, -g


def scans(writers=40, each=10, pixels=144):
    style = torch.randn(writers, 1, pixels)
    pictures = style + 0.8 * torch.randn(writers, each, pixels)
    pictures[11, 7] = pictures[11, 2]
    return pictures


def draw_pairs(pictures, n=24):
    writers, each = pictures.shape[:2]
    w = torch.randint(writers, (n,))
    same = torch.arange(n) < n // 2
    shift = torch.randint(1, writers, (n,))
    other = torch.where(same, w, (w + shift) % writers)
    a = torch.randint(each, (n,))
    b = (a + torch.randint(1, each, (n,))) % each
    return pictures[w, a], pictures[other, b], same.float()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(144, 96), nn.LeakyReLU(0.1), nn.LayerNorm(96), nn.Linear(96, 24)
        )

    def forward(self, x):
        return self.layers(x)


def main():
    pictures = scans()
    encoder = Encoder()
    optimizer = torch.optim.RMSprop(encoder.parameters(), lr=3e-4)
    margin = 4.0
    for it in range(800):
        left, right, same = draw_pairs(pictures)
        dist = PairDistance.apply(encoder(left), encoder(right))
        pull = same * dist
        push = (1 - same) * torch.relu(margin - dist)
        loss = (pull + push).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 50 == 0:
            print("iteration", it, "loss", f"{loss.item():.4f}")


main()
