import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class SegNet(nn.Module):
    def __init__(self, c=10):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, 2, 1))

    def forward(self, x):
        return self.net(x)


class PolyLR:
    def __init__(self, optimizer, base_lr, max_iter, power=0.9):
        self.optimizer, self.base_lr, self.max_iter, self.power = optimizer, base_lr, max_iter, power

    def step(self, it):
        lr = self.base_lr * np.power(np.float64(1.0 - it / self.max_iter), self.power)
        for g in self.optimizer.param_groups:
            g["lr"] = float(lr)
        return lr


def blobs(n, rng):
    yy, xx = np.mgrid[0:16, 0:16]
    cx, cy, r = rng.uniform(4, 12, n), rng.uniform(4, 12, n), rng.uniform(2, 5, n)
    mask = ((xx - cx[:, None, None]) ** 2 + (yy - cy[:, None, None]) ** 2) < r[:, None, None] ** 2
    img = mask * 0.8 + rng.normal(0, 0.4, mask.shape)
    return torch.tensor(img, dtype=torch.float32)[:, None], torch.tensor(mask, dtype=torch.long)


def main():
    rng = np.random.default_rng(4)
    torch.manual_seed(4)
    images, masks = blobs(400, rng)
    epochs, bs = 5, 8
    iters_per_epoch = len(images) // bs
    model = SegNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    sched = PolyLR(opt, 0.1, max_iter=(epochs - 1) * iters_per_epoch)
    it = 0
    for epoch in range(epochs):
        order = torch.randperm(len(images))
        for k in range(iters_per_epoch):
            b = order[k * bs:(k + 1) * bs]
            sched.step(it)
            loss = F.cross_entropy(model(images[b]), masks[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            it += 1
            if it % 20 == 0:
                print(f"epoch {epoch} iter {it} loss {loss.item():.4f}")


main()
