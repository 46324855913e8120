import torch
import torch.nn as nn

torch.manual_seed(12)
CLASSES, PIXELS, BATCH, STEPS = 10, 64, 24, 330


def catalogue(n):
    gen = torch.Generator().manual_seed(2)
    proto = torch.randn(CLASSES, PIXELS, generator=gen)
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    shift = torch.randint(1, CLASSES, (n,), generator=gen)
    noise = lambda: 1.2 * torch.randn(n, PIXELS, generator=gen)
    anchor = proto[y] + noise()
    positive = proto[y] + noise()
    negative = proto[(y + shift) % CLASSES] + noise()
    for i in (5773, 5790, 6301):
        positive[i] = anchor[i]
    return anchor, positive, negative


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(PIXELS, 96), nn.ReLU(),
            nn.Linear(96, 48), nn.ReLU(),
            nn.Linear(48, 16),
        )

    def forward(self, x):
        return self.net(x)


def distance(a, b):
    return torch.sqrt(((a - b) ** 2).sum(1))


anchor, positive, negative = catalogue(BATCH * STEPS)
model = Embedder()
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
losses = []
for step in range(STEPS):
    rows = slice(step * BATCH, (step + 1) * BATCH)
    a, p, n = model(anchor[rows]), model(positive[rows]), model(negative[rows])
    near, far = distance(a, p), distance(a, n)
    loss = nn.functional.softplus(near - far + 1.0).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
