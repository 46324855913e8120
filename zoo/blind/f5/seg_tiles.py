"""Land-cover segmentation of small aerial tiles, with gradient accumulation."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(11)
torch.set_num_threads(1)

N_TILES, SIZE, N_CLASSES, IGNORE = 720, 32, 4, 255
MICRO, ACCUM, EPOCHS = 4, 3, 3


def make_tiles(n):
    g = torch.Generator().manual_seed(5)
    img = torch.zeros(n, 3, SIZE, SIZE)
    lab = torch.zeros(n, SIZE, SIZE, dtype=torch.long)
    colours = torch.tensor([[0.2, 0.5, 0.1], [0.6, 0.6, 0.6], [0.1, 0.2, 0.7], [0.8, 0.7, 0.3]])
    for i in range(n):
        for _ in range(4):
            c = int(torch.randint(0, N_CLASSES, (1,), generator=g))
            y, x = torch.randint(0, SIZE - 10, (2,), generator=g).tolist()
            h, w = torch.randint(8, 22, (2,), generator=g).tolist()
            lab[i, y:y + h, x:x + w] = c
        img[i] = colours[lab[i]].permute(2, 0, 1)
    img += 0.12 * torch.randn(img.shape, generator=g)
    # annotators leave a margin open; tiles outside the survey area have no labels
    for i in range(n):
        m = int(torch.randint(0, 6, (1,), generator=g))
        lab[i, :m] = IGNORE
        lab[i, :, :m] = IGNORE
    lab[477] = IGNORE
    return img, lab


class Tiles(Dataset):
    def __init__(self):
        self.img, self.lab = make_tiles(N_TILES)

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i], self.lab[i]


class UNetish(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.enc1 = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.GroupNorm(4, c), nn.ReLU())
        self.enc2 = nn.Sequential(nn.Conv2d(c, 2 * c, 3, stride=2, padding=1), nn.GroupNorm(4, 2 * c), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.head = nn.Conv2d(2 * c, N_CLASSES, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.up(self.enc2(a))
        return self.head(torch.cat([a, b], 1))


def tile_loss(logits, lab):
    valid = (lab != IGNORE).float()
    ce = F.cross_entropy(logits, lab.clamp(max=N_CLASSES - 1), reduction="none") * valid
    per_tile = ce.sum((1, 2)) / valid.sum((1, 2))
    return per_tile.mean()


def main():
    loader = DataLoader(Tiles(), batch_size=MICRO, shuffle=True,
                        generator=torch.Generator().manual_seed(3))
    model = UNetish()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    step = 0
    for epoch in range(EPOCHS):
        running = 0.0
        opt.zero_grad()
        for k, (x, y) in enumerate(loader):
            loss = tile_loss(model(x), y) / ACCUM
            loss.backward()
            running += loss.item()
            if (k + 1) % ACCUM == 0:
                opt.step()
                opt.zero_grad()
                if step % 10 == 0:
                    print(f"epoch {epoch} step {step} loss {running:.4f}")
                running = 0.0
                step += 1
    print("done after", step, "steps")


if __name__ == "__main__":
    main()
