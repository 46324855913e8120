"""Generator of two-dimensional detector hits: adversarial training with two optimizers.

Neither loss is meant to fall: the discriminator settles near ln 4 = 1.386 and the
generator near ln 2 = 0.693. Quality is measured on samples: how many of the eight
spots are hit, the share of hits near a spot, and the energy distance to real hits.
"""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

NOISE = 8


def spots():
    angle = torch.arange(8) * (2 * math.pi / 8)
    return torch.stack([angle.cos(), angle.sin()], 1)


def real_hits(n, generator=None):
    which = torch.randint(0, 8, (n,), generator=generator)
    return spots()[which] + 0.08 * torch.randn(n, 2, generator=generator)


def mlp(n_in, n_out, width=96):
    return nn.Sequential(nn.Linear(n_in, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2),
                         nn.Linear(width, n_out))


def energy_distance(a, b):
    cross, aa, bb = torch.cdist(a, b).mean(), torch.cdist(a, a).mean(), torch.cdist(b, b).mean()
    return (2 * cross - aa - bb).item()


@torch.no_grad()
def quality(generator, reference, z):
    fake = generator(z)
    distance, nearest = torch.cdist(fake, spots()).min(1)
    near = distance < 0.3
    share = torch.bincount(nearest[near], minlength=8).float() / len(fake)
    return int((share > 0.03).sum()), near.float().mean().item(), energy_distance(fake, reference)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    fixed = torch.Generator().manual_seed(9)
    val, test = real_hits(1500, fixed), real_hits(1500, fixed)
    z_val, z_test = torch.randn(1500, NOISE, generator=fixed), torch.randn(1500, NOISE, generator=fixed)
    generator, critic = mlp(NOISE, 2), mlp(2, 1)
    averaged = copy.deepcopy(generator)
    opt_g = torch.optim.Adam(generator.parameters(), lr=4e-4, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(critic.parameters(), lr=8e-4, betas=(0.5, 0.99))
    print(f"two real samples: energy distance {energy_distance(val, test):.4f}")

    for round_ in range(1, 16):
        sum_d = sum_g = 0.0
        for _ in range(150):
            real = real_hits(256).requires_grad_(True)
            fake = generator(torch.randn(256, NOISE))
            out_real, out_fake = critic(real), critic(fake.detach())
            slope = torch.autograd.grad(out_real.sum(), real, create_graph=True)[0]
            loss_d = F.softplus(-out_real).mean() + F.softplus(out_fake).mean()
            penalty = 0.05 * slope.square().sum(1).mean()        # R1 penalty
            opt_d.zero_grad()
            (loss_d + penalty).backward()
            opt_d.step()

            loss_g = F.softplus(-critic(fake)).mean()            # non-saturating
            opt_g.zero_grad()
            loss_g.backward()                                    # critic's gradients are cleared above
            opt_g.step()
            with torch.no_grad():
                for p, q in zip(averaged.parameters(), generator.parameters()):
                    p.lerp_(q, 0.01)
            sum_d += loss_d.item()
            sum_g += loss_g.item()
        hit, near, energy = quality(averaged, val, z_val)
        print(f"round {round_:2d} loss D {sum_d / 150:.3f} loss G {sum_g / 150:.3f} | "
              f"spots {hit}/8 near {near:.3f} energy {energy:.4f}")
    hit, near, energy = quality(averaged, test, z_test)
    print(f"test: spots {hit}/8 near {near:.3f} energy {energy:.4f}")


if __name__ == "__main__":
    main()
