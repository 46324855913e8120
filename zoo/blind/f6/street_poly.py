import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(34)
SIZE, CLASSES, BATCH, EPOCHS, PER_EPOCH = 16, 4, 8, 7, 45
TOTAL = 6 * PER_EPOCH


def streets(n):
    label = torch.zeros(n, SIZE, SIZE, dtype=torch.long)
    for i in range(n):
        sky, road = torch.randint(3, 7, (1,)).item(), torch.randint(10, 14, (1,)).item()
        label[i, sky:] = 1
        label[i, road:] = 2
        c = torch.randint(1, SIZE - 4, (1,)).item()
        label[i, sky:road, c:c + 3] = 3
    colour = torch.tensor([[0.2, 0.5, 1.0], [0.4, 0.4, 0.3], [0.1, 0.1, 0.1], [0.8, 0.2, 0.1]])
    image = colour[label].permute(0, 3, 1, 2) + 0.3 * torch.randn(n, 3, SIZE, SIZE)
    return image, label


def poly_rate(base, iteration, power=0.9):
    return base * np.power(1 - iteration / TOTAL, power)


model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
    nn.Conv2d(16, CLASSES, 1),
)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
images, labels = streets(200)
losses, step = [], 0
for epoch in range(EPOCHS):
    for _ in range(PER_EPOCH):
        for group in opt.param_groups:
            group["lr"] = poly_rate(0.1, step)
        pick = torch.randint(0, len(images), (BATCH,))
        loss = F.cross_entropy(model(images[pick]), labels[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if step % 15 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        step += 1
print("final", losses[-1])
