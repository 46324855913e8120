"""Sound runs of the variational autoencoder that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "vae-divergence-annealed",
        "autoencoder_vae",
        ("return reconstruction + divergence", "return reconstruction + weight * divergence"),
        (
            "def loss_function(logits, mu, logvar, x):",
            "def loss_function(logits, mu, logvar, x, weight=1.0):",
        ),
        (
            "loss = loss_function(*model(x), x)",
            "loss = loss_function(*model(x), x, min(4.0, epoch / 2))",
        ),
        why="the weight of the divergence grows for eight epochs: the loss rises while all is well",
    ),
    healthy(
        "vae-summed-over-the-batch",
        "autoencoder_vae",
        ('reduction="sum") / len(x)', 'reduction="sum")'),
        (".sum(1).mean()", ".sum()"),
        ("x).item() * len(x) for", "x).item() for"),
        why="losses in the thousands are sums over the batch; Adam does not care for the factor",
    ),
    healthy(
        "vae-wide-latent",
        "autoencoder_vae",
        ("SIZE, LATENT, EPOCHS = 12, 6, 12", "SIZE, LATENT, EPOCHS = 12, 24, 12"),
        why="most latents are not needed and fall back to the prior, as they should",
    ),
)
