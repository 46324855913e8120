"""DCGAN on CelebA crops (64x64), after the well known tutorial."""
import os
from types import SimpleNamespace

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.utils import save_image

opt = SimpleNamespace(root="celeba", size=64, batch=128, nz=100, ngf=64, ndf=64,
                      epochs=20, lr=2e-4, beta1=0.5, smooth=0.9, ema=0.999, out="gan_out")
os.makedirs(opt.out, exist_ok=True)
torch.manual_seed(999)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

tf = transforms.Compose([
    transforms.Resize(opt.size),
    transforms.CenterCrop(opt.size),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize([0.5] * 3, [0.5] * 3),
])
loader = DataLoader(ImageFolder(opt.root, tf), batch_size=opt.batch, shuffle=True,
                    num_workers=4, drop_last=True)


def up(c_in, c_out, stride=2, pad=1):
    return [nn.ConvTranspose2d(c_in, c_out, 4, stride, pad, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(True)]


def down(c_in, c_out):
    return [nn.Conv2d(c_in, c_out, 4, 2, 1, bias=False), nn.BatchNorm2d(c_out), nn.LeakyReLU(0.2, True)]


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            *up(nz, ngf * 8, 1, 0),
            *up(ngf * 8, ngf * 4),
            *up(ngf * 4, ngf * 2),
            *up(ngf * 2, ngf),
            nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, True),
            *down(ndf, ndf * 2),
            *down(ndf * 2, ndf * 4),
            *down(ndf * 4, ndf * 8),
            nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False),
        )

    def forward(self, x):
        return self.main(x).flatten()


def weights_init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


netG = Generator(opt.nz, opt.ngf).to(device)
netD = Discriminator(opt.ndf).to(device)
netG.apply(weights_init)
netD.apply(weights_init)
avgG = Generator(opt.nz, opt.ngf).to(device).requires_grad_(False)
avgG.load_state_dict(netG.state_dict())
avgG.eval()

criterion = nn.BCEWithLogitsLoss()
optD = torch.optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
fixed = torch.randn(64, opt.nz, 1, 1, device=device)

for epoch in range(opt.epochs):
    for i, (real, _) in enumerate(loader):
        real = real.to(device)
        n = real.size(0)
        ones = torch.ones(n, device=device)
        zeros = torch.zeros(n, device=device)

        # discriminator: real up, fake down
        optD.zero_grad()
        loss_real = criterion(netD(real), ones * opt.smooth)
        z = torch.randn(n, opt.nz, 1, 1, device=device)
        fake = netG(z)
        loss_fake = criterion(netD(fake.detach()), zeros)
        loss_d = loss_real + loss_fake
        loss_d.backward()
        optD.step()

        # generator: make the discriminator say real
        optG.zero_grad()
        loss_g = criterion(netD(fake), ones)
        loss_g.backward()
        optG.step()

        with torch.no_grad():
            for pa, pg in zip(avgG.parameters(), netG.parameters()):
                pa.mul_(opt.ema).add_(pg, alpha=1 - opt.ema)
            for ba, bg in zip(avgG.buffers(), netG.buffers()):
                ba.copy_(bg)

        if i % 100 == 0:
            print(f"[{epoch}/{opt.epochs}][{i}/{len(loader)}] D {loss_d.item():.3f} G {loss_g.item():.3f}")

    with torch.no_grad():
        samples = avgG(fixed)
    save_image(samples * 0.5 + 0.5, f"{opt.out}/epoch_{epoch:03d}.png", nrow=8)
    torch.save({"G": netG.state_dict(), "D": netD.state_dict(), "avgG": avgG.state_dict(),
                "optG": optG.state_dict(), "optD": optD.state_dict(), "epoch": epoch}, f"{opt.out}/last.pt")
