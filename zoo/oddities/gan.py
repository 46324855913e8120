"""Sound runs of the GAN that look odd."""

from zoo.specimens import healthy

GENERATOR_STEP = (
    "        optimizer_g.zero_grad()\n"
    "        fake = generator(torch.randn(len(real), LATENT))\n"
    "        loss_g = criterion(discriminator(fake), ones)\n"
    "        loss_g.backward()\n"
    "        optimizer_g.step()\n"
)

SPECIMENS = (
    healthy(
        "gan-three-critic-steps",
        "gan",
        ("for (real,) in loader:\n", "for batch, (real,) in enumerate(loader):\n"),
        (
            GENERATOR_STEP,
            "        if batch % 3 == 0:\n"
            + "".join(f"    {line}\n" for line in GENERATOR_STEP.splitlines()),
        ),
        ("generator.parameters(), lr=1e-3", "generator.parameters(), lr=2e-3"),
        ("EPOCHS = 2, 10", "EPOCHS = 2, 14"),
        why="the discriminator takes three steps for one of the generator",
    ),
    healthy(
        "gan-smooth-labels",
        "gan",
        ("criterion(discriminator(real), ones)", "criterion(discriminator(real), 0.9 * ones)"),
        why="one-sided label smoothing keeps the discriminator's loss up",
    ),
    healthy(
        "gan-hinge",
        "gan",
        ("criterion(discriminator(real), ones)", "(1 - discriminator(real)).relu().mean()"),
        (
            "criterion(discriminator(fake.detach()), zeros)",
            "(1 + discriminator(fake.detach())).relu().mean()",
        ),
        ("criterion(discriminator(fake), ones)", "-discriminator(fake).mean()"),
        why="the generator's hinge loss changes its sign and has no floor",
    ),
)
