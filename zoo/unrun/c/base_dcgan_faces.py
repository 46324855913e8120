# DCGAN with R1 penalty and an averaged generator on 64x64 faces
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.transforms as T
import torchvision.utils as vutils
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

torch.manual_seed(999)
dataroot = "data/celeba"
outdir = "samples"
image_size, batch_size, nz, ngf, ndf = 64, 128, 100, 64, 64
num_epochs, lr, beta1, r1_gamma, ema_decay = 25, 2e-4, 0.5, 1.0, 0.999
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
os.makedirs(outdir, exist_ok=True)

dataset = ImageFolder(dataroot, transform=T.Compose([
    T.Resize(image_size),
    T.CenterCrop(image_size),
    T.RandomHorizontalFlip(),
    T.ToTensor(),
    T.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
]))
dataloader = DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=4, drop_last=True)


def weights_init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 8), nn.ReLU(True)]
        for cin, cout in ((8, 4), (4, 2), (2, 1)):
            layers += [nn.ConvTranspose2d(ngf * cin, ngf * cout, 4, 2, 1, bias=False),
                       nn.BatchNorm2d(ngf * cout), nn.ReLU(True)]
        layers += [nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False), nn.Tanh()]
        self.main = nn.Sequential(*layers)

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, ndf, 4, 2, 1), nn.LeakyReLU(0.2)]
        for cin, cout in ((1, 2), (2, 4), (4, 8)):
            layers += [nn.Conv2d(ndf * cin, ndf * cout, 4, 2, 1), nn.LeakyReLU(0.2)]
        layers += [nn.Conv2d(ndf * 8, 1, 4, 1, 0)]
        self.main = nn.Sequential(*layers)

    def forward(self, x):
        return self.main(x).view(-1)


def r1_penalty(real, logits):
    (grad,) = torch.autograd.grad(logits.sum(), real, create_graph=True)
    return grad.pow(2).flatten(1).sum(1).mean()


@torch.no_grad()
def update_ema(ema, net, decay):
    for pe, p in zip(ema.parameters(), net.parameters()):
        pe.mul_(decay).add_(p, alpha=1 - decay)
    for be, b in zip(ema.buffers(), net.buffers()):
        be.copy_(b)


netG = Generator().to(device)
netD = Discriminator().to(device)
netG.apply(weights_init)
netD.apply(weights_init)
emaG = copy.deepcopy(netG).eval()

optimizerD = torch.optim.Adam(netD.parameters(), lr=lr, betas=(beta1, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=lr, betas=(beta1, 0.999))
fixed_noise = torch.randn(64, nz, 1, 1, device=device)

iters = 0
for epoch in range(num_epochs):
    for real, _ in dataloader:
        real = real.to(device).requires_grad_(True)
        b_size = real.size(0)

        # discriminator: -log D(x) - log(1 - D(G(z))), with a penalty on the gradient at real images
        optimizerD.zero_grad()
        real_logits = netD(real)
        fake = netG(torch.randn(b_size, nz, 1, 1, device=device))
        fake_logits = netD(fake.detach())
        errD = F.softplus(-real_logits).mean() + F.softplus(fake_logits).mean()
        (errD + 0.5 * r1_gamma * r1_penalty(real, real_logits)).backward()
        optimizerD.step()

        # generator: -log D(G(z))
        optimizerG.zero_grad()
        gen_logits = netD(fake)
        errG = F.softplus(-gen_logits).mean()
        errG.backward()
        optimizerG.step()
        update_ema(emaG, netG, ema_decay)

        if iters % 200 == 0:
            print(f"[{epoch}/{num_epochs}] iter {iters} Loss_D {errD.item():.4f} Loss_G {errG.item():.4f} "
                  f"D(x) {torch.sigmoid(real_logits).mean().item():.3f} "
                  f"D(G(z)) {torch.sigmoid(gen_logits).mean().item():.3f}")
        iters += 1

    with torch.no_grad():
        grid = emaG(fixed_noise).cpu()
    vutils.save_image(grid, f"{outdir}/epoch_{epoch:03d}.png", normalize=True, value_range=(-1, 1), nrow=8)
    torch.save({"G": netG.state_dict(), "D": netD.state_dict(), "emaG": emaG.state_dict(),
                "optG": optimizerG.state_dict(), "optD": optimizerD.state_dict(), "epoch": epoch},
               f"{outdir}/checkpoint.pt")
