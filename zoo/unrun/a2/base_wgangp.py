"""WGAN-GP on CIFAR-10 with two optimizers and EMA generator samples."""
import argparse
import copy
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.utils import save_image


class Generator(nn.Module):
    def __init__(self, z_dim=128, ch=128):
        super().__init__()
        self.fc = nn.Linear(z_dim, 4 * 4 * 4 * ch)

        def up(c_in, c_out):
            return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
                                 nn.BatchNorm2d(c_out), nn.ReLU(inplace=True))
        self.ch = ch
        self.body = nn.Sequential(nn.BatchNorm2d(4 * ch), nn.ReLU(inplace=True),
                                  up(4 * ch, 2 * ch), up(2 * ch, ch), up(ch, ch))
        self.to_rgb = nn.Sequential(nn.Conv2d(ch, 3, 3, padding=1), nn.Tanh())

    def forward(self, z):
        return self.to_rgb(self.body(self.fc(z).view(-1, 4 * self.ch, 4, 4)))


class Critic(nn.Module):
    def __init__(self, ch=128):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, ch, 5, stride=2, padding=2), nn.LeakyReLU(0.2),
            nn.Conv2d(ch, 2 * ch, 5, stride=2, padding=2), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * ch, 4 * ch, 5, stride=2, padding=2), nn.LeakyReLU(0.2))
        self.fc = nn.Linear(4 * 4 * 4 * ch, 1)

    def forward(self, x):
        return self.fc(self.body(x).flatten(1)).squeeze(1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    grad = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
    return ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def critic_step(gen, critic, opt_c, real, args):
    z = torch.randn(real.size(0), args.z_dim, device=real.device)
    with torch.no_grad():
        fake = gen(z)
    wasserstein = critic(real).mean() - critic(fake).mean()
    gp = gradient_penalty(critic, real, fake)
    loss = -wasserstein + args.gp_weight * gp
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
    return wasserstein.item(), gp.item()


def generator_step(gen, critic, opt_g, batch_size, args, device):
    z = torch.randn(batch_size, args.z_dim, device=device)
    critic.requires_grad_(False)
    loss = -critic(gen(z)).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
    critic.requires_grad_(True)
    return loss.item()


@torch.no_grad()
def update_ema(ema, gen, decay):
    for e, p in zip(ema.parameters(), gen.parameters()):
        e.lerp_(p, 1 - decay)
    for e, b in zip(ema.buffers(), gen.buffers()):
        e.copy_(b)


def forever(loader):
    while True:
        for x, _ in loader:
            yield x


@torch.no_grad()
def validate(gen, critic, loader, args, device):
    """Wasserstein estimate on held-out images; a gap to the training value shows critic overfitting."""
    gen.eval()
    real_sum = fake_sum = n = 0
    for x, _ in loader:
        real_sum += critic(x.to(device)).sum().item()
        fake_sum += critic(gen(torch.randn(x.size(0), args.z_dim, device=device))).sum().item()
        n += x.size(0)
    gen.train()
    return (real_sum - fake_sum) / n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default="wgan")
    p.add_argument("--steps", type=int, default=60000)
    p.add_argument("--batch_size", type=int, default=64)
    p.add_argument("--n_critic", type=int, default=5)
    p.add_argument("--z_dim", type=int, default=128)
    p.add_argument("--gp_weight", type=float, default=10.0)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--ema", type=float, default=0.999)
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)])
    train_set = datasets.CIFAR10("data", train=True, download=True, transform=tf)
    test_set = datasets.CIFAR10("data", train=False, download=True, transform=tf)
    batches = forever(DataLoader(train_set, args.batch_size, shuffle=True, drop_last=True, num_workers=4))
    test_loader = DataLoader(test_set, 250)

    gen, critic = Generator(args.z_dim).to(device), Critic().to(device)
    ema = copy.deepcopy(gen).eval()
    opt_g = torch.optim.Adam(gen.parameters(), lr=args.lr, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=args.lr, betas=(0.0, 0.9))
    fixed_z = torch.randn(64, args.z_dim, device=device)

    for step in range(1, args.steps + 1):
        for _ in range(args.n_critic):
            w, gp = critic_step(gen, critic, opt_c, next(batches).to(device), args)
        g_loss = generator_step(gen, critic, opt_g, args.batch_size, args, device)
        update_ema(ema, gen, args.ema)
        if step % 1000 == 0:
            held_out = validate(gen, critic, test_loader, args, device)
            print(f"{step}: W train {w:.3f} held-out {held_out:.3f} gp {gp:.4f} G {g_loss:.3f}")
            with torch.no_grad():
                save_image(ema(fixed_z) * 0.5 + 0.5, f"{args.out}/{step:06d}.png")
            torch.save({"gen": gen.state_dict(), "critic": critic.state_dict(), "ema": ema.state_dict(),
                        "opt_g": opt_g.state_dict(), "opt_c": opt_c.state_dict(), "step": step}, f"{args.out}/last.pt")


if __name__ == "__main__":
    main()
