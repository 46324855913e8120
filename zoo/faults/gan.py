"""Mistakes made in the GAN."""

from holter.record.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "gan-detached-generator",
        "gan",
        (
            "loss_g = criterion(discriminator(fake), ones)",
            "loss_g = criterion(discriminator(fake.detach()), ones)",
        ),
        why="fakes are detached in the generator's step too: the generator gets no gradient",
        cause="unreached-parameters",
        accepts=("step-without-backward", "motionless-weights"),
        level=Level.ARCHITECTURE,
        by=50,
        source="T24",
    ),
    fault(
        "gan-uncleared-discriminator",
        "gan",
        ("        optimizer_d.zero_grad()\n", ""),
        why="the discriminator's gradients are never cleared: the generator's step adds to them",
        cause="uncleared-gradients",
        level=Level.PROCEDURE,
        by=50,
        source="T01",
    ),
    fault(
        "gan-sigmoid",
        "gan",
        (
            "nn.LeakyReLU(0.2), nn.Linear(64, 1)\n",
            "nn.LeakyReLU(0.2), nn.Linear(64, 1), nn.Sigmoid()\n",
        ),
        why="the discriminator ends in a sigmoid, and the loss applies another",
        cause="doubled-sigmoid",
        level=Level.ARCHITECTURE,
        by=50,
        source="A02",
    ),
    fault(
        "gan-log-of-zero",
        "gan",
        (
            "        loss_g = criterion(discriminator(fake), ones)\n",
            "        loss_g = (1 - discriminator(fake).sigmoid()).log().mean()\n",
        ),
        ("discriminator.parameters(), lr=4e-3", "discriminator.parameters(), lr=0.2"),
        why="the textbook loss takes the log of 1 - D, which is 0 once D is sure",
        cause="singular-operations",
        accepts=("nonfinite-loss", "nonfinite-gradient", "huge-updates"),
        level=Level.NUMERICS,
        by=200,
        source="N01",
    ),
    fault(
        "gan-fast-discriminator",
        "gan",
        ("discriminator.parameters(), lr=4e-3", "discriminator.parameters(), lr=0.8"),
        why="the discriminator's learning rate is two hundred times too high",
        cause="huge-updates",
        level=Level.HYPERPARAMETER,
        by=60,
        source="H01",
    ),
    fault(
        "gan-far-points",
        "gan",
        (
            "+ 0.1 * torch.randn(2560, 2)",
            "+ 0.1 * torch.randn(2560, 2)\npoints = 500 + 200 * points",
        ),
        why="real points are left in pixels, hundreds away from where the generator starts",
        cause="unscaled-inputs",
        level=Level.DATA,
        by=100,
        source="D03",
    ),
    fault(
        "gan-wrong-network",
        "gan",
        ("torch.optim.Adam(discriminator.parameters()", "torch.optim.Adam(generator.parameters()"),
        why="both optimizers hold the generator: the discriminator is never trained",
        cause="parameters-outside-optimizer",
        level=Level.PROCEDURE,
        by=50,
        source="T24",
    ),
)
