import torch
import torch.nn as nn
import torch.nn.functional as F


def scenes(n, gen):
    img = 0.4 * torch.randn(n, 1, 20, 20, generator=gen)
    lab = torch.zeros(n, 20, 20, dtype=torch.long)
    for i in range(n):
        r, c = torch.randint(2, 12, (2,), generator=gen).tolist()
        img[i, 0, r:r + 6, c:c + 6] += 1.0
        lab[i, r:r + 6, c:c + 6] = 1
    return img, lab


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 12, 3, padding=1)
        self.b = nn.Conv2d(12, 12, 3, padding=1)
        self.c = nn.Conv2d(12, 2, 1)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))))


def hard_loss(logits, lab, thresh=0.7):
    per_pixel = F.cross_entropy(logits, lab, reduction="none")
    keep = (per_pixel > thresh).float()
    return (per_pixel * keep).sum() / keep.sum()


def main():
    torch.manual_seed(77)
    gen = torch.Generator().manual_seed(77)
    net = Segmenter()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(260):
        x, y = scenes(12, gen)
        loss = hard_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print("iter %d  loss %.4f" % (step, loss))


main()
