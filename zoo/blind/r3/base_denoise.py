import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def scene(rng, size=16):
    """uint8 picture: smooth gradient with two flat boxes"""
    yy, xx = np.mgrid[0:size, 0:size] / size
    img = 110 + 70 * np.sin(3 * xx * rng.uniform(0.3, 1) + rng.uniform(0, 6)) * np.cos(3 * yy * rng.uniform(0.3, 1))
    for _ in range(2):
        r, c = rng.integers(0, size - 5, 2)
        h, w = rng.integers(3, 7, 2)
        img[r:r + h, c:c + w] = rng.choice([8, 40, 215, 248])
    return np.clip(img, 0, 255).astype(np.uint8)


def add_noise(img, rng, sigma=25):
    noise = rng.normal(0, sigma, img.shape)
    return np.clip(img + noise, 0, 255).astype(np.uint8)


def to_tensor(img):
    return torch.from_numpy(img.astype(np.float32) / 127.5 - 1.0)[None]


class NoisyScenes(Dataset):
    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.clean = [scene(self.rng) for _ in range(n)]

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        clean = self.clean[i]
        noisy = add_noise(clean, self.rng)
        return to_tensor(noisy), to_tensor(clean)


class Denoiser(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, ch, 3, padding=1), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv2d(2 * ch, 2 * ch, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * ch, ch, 2, stride=2)
        self.out = nn.Sequential(nn.Conv2d(2 * ch, ch, 3, padding=1), nn.ReLU(), nn.Conv2d(ch, 1, 3, padding=1))

    def forward(self, x):
        a = self.down1(x)
        b = self.mid(self.down2(a))
        return self.out(torch.cat([a, self.up(b)], dim=1))


def psnr(a, b):
    return 10 * torch.log10(4.0 / ((a - b) ** 2).mean()).item()


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.MSELoss()

    def train_epoch(self):
        self.model.train()
        running = 0.0
        for noisy, clean in self.train_loader:
            restored = self.model(noisy)
            loss = self.loss_fn(restored, clean)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            running += loss.item()
        return running / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        noisy, clean = next(iter(self.val_loader))
        return psnr(self.model(noisy), clean), psnr(noisy, clean)

    def fit(self, epochs):
        for epoch in range(epochs):
            loss = self.train_epoch()
            after, before = self.validate()
            print(f"[{epoch + 1}/{epochs}] train mse {loss:.5f} | val psnr {after:.2f} dB (input {before:.2f} dB)")


def main():
    torch.manual_seed(2)
    train = DataLoader(NoisyScenes(400, seed=0), batch_size=20, shuffle=True)
    val = DataLoader(NoisyScenes(100, seed=1), batch_size=100)
    model = Denoiser()
    Trainer(model, train, val, lr=3e-3).fit(epochs=8)

    shots = np.random.default_rng(77)
    clean = np.stack([scene(shots) for _ in range(100)])
    noisy = np.clip(np.rint(clean + shots.normal(0, 25, clean.shape)), 0, 255)
    clean, noisy = (torch.from_numpy(a.astype(np.float32))[:, None] / 127.5 - 1.0 for a in (clean, noisy))
    with torch.no_grad():
        print(f"test shots: psnr {psnr(model(noisy), clean):.2f} dB (input {psnr(noisy, clean):.2f} dB)")


if __name__ == "__main__":
    main()
