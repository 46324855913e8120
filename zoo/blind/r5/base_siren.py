import numpy as np
import torch
from torch import nn

# fit a grey image with a sine network; every third pixel (in a checker) is kept back for the score
torch.manual_seed(0)
np.random.seed(0)

SIDE_H, SIDE_W = 72, 72
W0 = 20.0
HIDDEN = 64
LAYERS = 3
EPOCHS = 45
BATCH = 512


def make_image(h, w):
    ii, jj = np.meshgrid(np.arange(h) / h, np.arange(w) / w, indexing="ij")
    img = 0.45 + 0.25 * np.sin(2 * np.pi * (3 * ii + 1.5 * jj ** 2))
    img += 0.20 * np.exp(-((ii - 0.3) ** 2 + (jj - 0.7) ** 2) / 0.01)
    img -= 0.25 * np.exp(-((ii - 0.75) ** 2 + (jj - 0.25) ** 2) / 0.02)
    img += 0.10 * np.sin(2 * np.pi * 6 * jj) * (ii > 0.5)
    img = (img - img.min()) / (img.max() - img.min())
    return np.round(img * 255).astype(np.uint8)


raw = make_image(SIDE_H, SIDE_W)
img = (raw.astype(np.float32) * 2 - 255) / 255

rows, cols = np.meshgrid(np.arange(SIDE_H), np.arange(SIDE_W), indexing="ij")
held = ((rows + 2 * cols) % 3 == 0).reshape(-1)

ys = torch.linspace(-1, 1, SIDE_H)
xs = torch.linspace(-1, 1, SIDE_W)
grid = torch.stack(torch.meshgrid(ys, xs, indexing="ij"), dim=-1).reshape(-1, 2)
values = torch.from_numpy(img).reshape(-1, 1)

held = torch.from_numpy(held)
train_xy, train_v = grid[~held], values[~held]
test_xy, test_v = grid[held], values[held]


class Sine(nn.Module):
    def __init__(self, n_in, n_out, first=False):
        super().__init__()
        self.lin = nn.Linear(n_in, n_out)
        with torch.no_grad():
            if first:
                bound = 1.0 / n_in
            else:
                bound = np.sqrt(6.0 / n_in) / W0
            self.lin.weight.uniform_(-bound, bound)

    def forward(self, x):
        return torch.sin(W0 * self.lin(x))


blocks = [Sine(2, HIDDEN, first=True)]
for _ in range(LAYERS - 1):
    blocks.append(Sine(HIDDEN, HIDDEN))
head = nn.Linear(HIDDEN, 1)
with torch.no_grad():
    b = np.sqrt(6.0 / HIDDEN) / W0
    head.weight.uniform_(-b, b)
net = nn.Sequential(*blocks, head)

optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)


def psnr(mse):
    # values live in [-1, 1]
    return 10 * np.log10(4.0 / max(mse, 1e-12))


for epoch in range(EPOCHS):
    order = torch.randperm(len(train_xy))
    total, seen = 0.0, 0
    for s in range(0, len(order), BATCH):
        pick = order[s:s + BATCH]
        pred = net(train_xy[pick])
        diff = pred - train_v[pick]
        loss = (diff ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(pick)
        seen += len(pick)
    scheduler.step()
    if epoch % 5 == 4:
        net.eval()
        with torch.no_grad():
            mse = ((net(test_xy) - test_v) ** 2).mean().item()
        net.train()
        print(f"epoch {epoch + 1:3d}  train mse {total / seen:.5f}  train psnr {psnr(total / seen):.2f}  held-out psnr {psnr(mse):.2f}")

with torch.no_grad():
    final = ((net(test_xy) - test_v) ** 2).mean().item()
print(f"done: held-out mse {final:.5f} psnr {psnr(final):.2f} dB")
