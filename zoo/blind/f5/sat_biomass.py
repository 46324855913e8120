"""Biomass regression from satellite patches that are read from raster windows."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(107)
torch.set_num_threads(1)

BANDS, SIZE, N, BATCH, EPOCHS = 5, 16, 3200, 32, 3
BAND_MEAN = torch.tensor([0.12, 0.18, 0.25, 0.40, 0.22]).view(-1, 1, 1)
BAND_STD = torch.tensor([0.05, 0.06, 0.08, 0.12, 0.07]).view(-1, 1, 1)


class Patches(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(4)
        density = torch.rand(N, 1, 1, 1, generator=g)
        field = F.avg_pool2d(torch.randn(N, 1, SIZE, SIZE, generator=g), 5, 1, 2) + density
        weights = torch.tensor([-0.06, -0.05, -0.1, 0.25, -0.1]).view(1, -1, 1, 1)
        self.bands = BAND_MEAN + weights * field + 0.02 * torch.randn(N, BANDS, SIZE, SIZE, generator=g)
        self.biomass = (field.mean((1, 2, 3)) * 3.0)
        # a window that reaches past the scene: the reader fills with the raster's nodata value
        self.bands[2277, :, :, 13:] = torch.finfo(torch.float32).min

    def __len__(self):
        return N

    def __getitem__(self, i):
        patch = (self.bands[i] - BAND_MEAN) / BAND_STD
        return patch, self.biomass[i], i


class Net(nn.Module):
    def __init__(self, c=20):
        super().__init__()
        self.stem = nn.Conv2d(BANDS, c, 3, padding=1)
        self.conv1 = nn.Conv2d(c, c, 3, padding=1)
        self.conv2 = nn.Conv2d(c, 2 * c, 3, stride=2, padding=1)
        self.fc = nn.Linear(2 * c, 1)

    def forward(self, x):
        h = F.relu(self.stem(x))
        h = h + F.relu(self.conv1(h))
        h = F.relu(self.conv2(h)).mean((2, 3))
        return self.fc(h).squeeze(1)


def main():
    loader = DataLoader(Patches(), batch_size=BATCH, shuffle=True,
                        generator=torch.Generator().manual_seed(44))
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS * len(loader))
    step = 0
    for epoch in range(EPOCHS):
        total = 0.0
        for x, y, _ in loader:
            loss = F.huber_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            sched.step()
            total += loss.item()
            if step % 15 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1
        print(f"== epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
