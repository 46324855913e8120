"""The generator ends in a tanh, and the data reach 2."""

import torch
from torch import nn

torch.manual_seed(0)
SCALE = 1.0


def data(count):
    angle = 6.2832 * torch.rand(count)
    points = torch.stack([2 * angle.cos(), 2 * angle.sin()], 1) + 0.1 * torch.randn(count, 2)
    return points / SCALE


def network(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, outputs),
    )


generator = nn.Sequential(network(4, 2), nn.Tanh())
discriminator = network(2, 1)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.9))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(96, 1), torch.zeros(96, 1)

for step in range(300):
    fake = generator(torch.randn(96, 4))
    loss = criterion(discriminator(data(96)), ones) + criterion(discriminator(fake.detach()), zeros)
    discriminator_optimizer.zero_grad()
    loss.backward()
    discriminator_optimizer.step()

    fake_loss = criterion(discriminator(generator(torch.randn(96, 4))), ones)
    generator_optimizer.zero_grad()
    fake_loss.backward()
    generator_optimizer.step()
    if step % 50 == 49:
        print(f"step {step}: discriminator {loss.item():.3f}, generator {fake_loss.item():.3f}")
