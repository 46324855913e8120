"""Segment roads in aerial tiles with a small convolutional network."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 16


def tile(g):
    img = 0.3 * torch.rand(3, SIZE, SIZE, generator=g)
    mask = torch.zeros(SIZE, SIZE)
    r = int(torch.randint(2, SIZE - 3, (1,), generator=g))
    if torch.rand((), generator=g) < 0.5:
        mask[r:r + 2] = 1
    else:
        mask[:, r:r + 2] = 1
    img = img + mask * (0.4 + 0.1 * torch.rand(3, 1, 1, generator=g))
    return img, mask


class Archive:
    """Tiles in the order in which the survey flights were delivered."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for i in range(n):
            img, mask = tile(g)
            if i >= 2600 and i % 4 == 1:
                mask = (mask * 255).to(torch.uint8).float()
            self.items.append((img, mask))

    def batches(self, size):
        for s in range(0, len(self.items), size):
            chunk = self.items[s:s + size]
            yield torch.stack([c[0] for c in chunk]), torch.stack([c[1] for c in chunk])


class UNetish(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.d1 = nn.Conv2d(3, c, 3, padding=1)
        self.d2 = nn.Conv2d(c, 2 * c, 3, padding=1)
        self.up = nn.Conv2d(3 * c, c, 3, padding=1)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = F.relu(self.d1(x))
        b = F.relu(self.d2(F.max_pool2d(a, 2)))
        b = F.interpolate(b, scale_factor=2, mode="nearest")
        return self.out(F.relu(self.up(torch.cat([a, b], 1)))).squeeze(1)


def main():
    torch.manual_seed(82)
    net = UNetish()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    step = 0
    for x, y in Archive(4800, 82).batches(12):
        loss = F.binary_cross_entropy_with_logits(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.4f}")
        step += 1


if __name__ == "__main__":
    main()
