"""Mistakes made in the variational autoencoder."""

from holter.record.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "vae-sigmoid-in-decoder",
        "autoencoder_vae",
        ("return self.decoder(z), mu, logvar", "return self.decoder(z).sigmoid(), mu, logvar"),
        why="the decoder ends in a sigmoid, and the loss applies another",
        cause="doubled-sigmoid",
        level=Level.ARCHITECTURE,
        by=100,
        source="A02",
    ),
    fault(
        "vae-raw-pixels",
        "autoencoder_vae",
        ("train_images = make_pixels(2048) / 255", "train_images = make_pixels(2048).float()"),
        ("valid_images = make_pixels(512) / 255", "valid_images = make_pixels(512).float()"),
        why="pixels of 0 to 255 are inputs, and targets of a loss for 0 to 1",
        cause="unscaled-inputs",
        accepts=("improper-probabilities", "unscaled-targets", "unbounded-loss"),
        level=Level.DATA,
        by=50,
        source="D03",
    ),
    fault(
        "vae-divergence-subtracted",
        "autoencoder_vae",
        ("return reconstruction + divergence", "return reconstruction - divergence"),
        why="the divergence has the wrong sign: the latents run away",
        cause="unbounded-loss",
        level=Level.PROCEDURE,
        by=150,
        source="T19",
    ),
    fault(
        "vae-reconstruction-averaged",
        "autoencoder_vae",
        ('logits, x, reduction="sum") / len(x)', "logits, x)"),
        why="the error is a mean over pixels, the divergence a sum: the latents carry nothing",
        cause="loss-at-constant-predictor",
        accepts=("collapsed-embeddings",),
        level=Level.PROCEDURE,
        by=300,
        source="T21",
    ),
    fault(
        "vae-exponential-overflow",
        "autoencoder_vae",
        (
            "model = VAE()\n",
            (
                "model = VAE()\n"
                "for parameter in model.parameters():\n"
                "    nn.init.normal_(parameter, std=2.0)\n"
            ),
        ),
        why="with weights drawn too large, e to the power of a log-variance overflows",
        cause="nonfinite-loss",
        accepts=("growing-activations",),
        level=Level.NUMERICS,
        by=20,
        source="N11",
    ),
    fault(
        "vae-lr-too-high",
        "autoencoder_vae",
        ("lr=2e-3", "lr=0.25"),
        why="the learning rate is a hundred times too high for Adam",
        cause="huge-updates",
        level=Level.HYPERPARAMETER,
        by=50,
        source="H01",
    ),
    fault(
        "vae-no-zero-grad",
        "autoencoder_vae",
        ("        optimizer.zero_grad()\n", ""),
        why="gradients are never cleared",
        cause="uncleared-gradients",
        level=Level.PROCEDURE,
        by=50,
        source="T01",
    ),
)
