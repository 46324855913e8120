"""Land-cover segmentation from small tiles. Batches are tiny, so gradients are accumulated."""
import torch
import torch.nn as nn
import torch.nn.functional as F

IGNORE, CLASSES, ACCUM = 255, 3, 4
torch.manual_seed(9)


def make_tiles(n, size=16):
    base = F.interpolate(torch.randn(n, 1, 4, 4), size=size, mode="bilinear")
    label = torch.bucketize(base.squeeze(1), torch.tensor([-0.4, 0.4]))
    image = torch.cat([base + 0.3 * torch.randn(n, 1, size, size), torch.randn(n, 1, size, size)], 1)
    # annotators leave a margin / clouds unlabelled
    for i in range(n):
        w = int(torch.randint(0, 10, (1,)))
        label[i, :, :w] = IGNORE
    label[205] = IGNORE
    return image, label


def masked_ce(logits, label):
    valid = label != IGNORE
    safe = torch.where(valid, label, torch.zeros_like(label))
    nll = F.cross_entropy(logits, safe, reduction="none")
    return (nll * valid).sum() / valid.sum()


net = nn.Sequential(
    nn.Conv2d(2, 16, 3, padding=1), nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
    nn.Conv2d(16, CLASSES, 1),
)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
image, label = make_tiles(320)

updates = 0
for epoch in range(2):
    running = []
    opt.zero_grad()
    for i in range(len(image)):
        loss = masked_ce(net(image[i:i + 1]), label[i:i + 1]) / ACCUM
        loss.backward()
        running.append(loss.item() * ACCUM)
        if (i + 1) % ACCUM == 0:
            opt.step()
            opt.zero_grad()
            updates += 1
            if updates % 10 == 0:
                print(f"update {updates:3d}  loss {sum(running[-20:]) / len(running[-20:]):.4f}")
