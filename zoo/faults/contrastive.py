"""Mistakes made in the contrastive encoder."""

from holter.record.findings import Level
from zoo.specimens import fault

ADAM = "torch.optim.Adam(model.parameters(), lr=2e-3)"

SPECIMENS = (
    fault(
        "contrastive-overflow",
        "contrastive",
        (
            "BATCH, TEMPERATURE, EPOCHS = 48, 64, 0.2, 12",
            "BATCH, TEMPERATURE, EPOCHS = 48, 64, 0.01, 12",
        ),
        (
            "    return F.cross_entropy(similarity, twin)\n",
            (
                "    weights = similarity.exp()\n"
                "    return -(weights[torch.arange(len(z)), twin] / weights.sum(1)).log().mean()\n"
            ),
        ),
        why="the softmax is written out, and exp overflows at a low temperature",
        cause="nonfinite-loss",
        accepts=("nonfinite-gradient",),
        level=Level.NUMERICS,
        by=5,
        source="N11",
    ),
    fault(
        "contrastive-root-of-zero",
        "contrastive",
        (
            "similarity = z @ z.T / TEMPERATURE",
            "similarity = -(z[:, None] - z).square().sum(2).sqrt() / TEMPERATURE",
        ),
        why="the distance of a view to itself is sqrt(0), whose gradient is not finite",
        cause="singular-operations",
        accepts=("nonfinite-gradient", "nonfinite-loss"),
        level=Level.NUMERICS,
        by=5,
        source="N02",
    ),
    fault(
        "contrastive-dead-encoder",
        "contrastive",
        (
            "model = Encoder()\n",
            (
                "model = Encoder()\nfor layer in model.modules():\n"
                "    if isinstance(layer, nn.Linear):\n"
                "        nn.init.constant_(layer.bias, -0.9)\n"
            ),
        ),
        why="biases begin so low that most units never fire",
        cause="dead-units",
        accepts=("dead-gradients", "all-zero-gradients"),
        level=Level.ARCHITECTURE,
        by=100,
        source="A14",
    ),
    fault(
        "contrastive-deep-sigmoid",
        "contrastive",
        (
            "nn.ReLU(), nn.Linear(96, 64), nn.ReLU())",
            (
                "nn.Sigmoid(), *(\n"
                "            each for _ in range(8) for each in (nn.Linear(96, 96), nn.Sigmoid())\n"
                "        ), nn.Linear(96, 64), nn.Sigmoid())"
            ),
        ),
        why="ten sigmoids in a row: hardly any gradient reaches the first layers",
        cause="vanishing-gradients",
        level=Level.ARCHITECTURE,
        by=150,
        source="A15",
    ),
    fault(
        "contrastive-large-init",
        "contrastive",
        (
            "model = Encoder()\n",
            "model = Encoder()\nfor each in model.parameters():\n    nn.init.normal_(each)\n",
        ),
        why="all weights are drawn with a standard deviation of 1: activations grow in each layer",
        cause="growing-activations",
        level=Level.ARCHITECTURE,
        by=100,
        source="A19",
    ),
    fault(
        "contrastive-raw-features",
        "contrastive",
        ("things = things / things.std()\n", "things = 300 + 80 * things / things.std()\n"),
        why="features are left in their own unit, hundreds away from zero",
        cause="unscaled-inputs",
        level=Level.DATA,
        by=60,
        source="D03",
    ),
    fault(
        "contrastive-low-learning-rate",
        "contrastive",
        (ADAM, "torch.optim.SGD(model.parameters(), lr=1e-5)"),
        why="SGD is given a learning rate that would be low for Adam",
        cause="tiny-updates",
        level=Level.HYPERPARAMETER,
        by=150,
        source="H02",
    ),
    fault(
        "contrastive-weight-decay",
        "contrastive",
        (ADAM, "torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=0.3)"),
        why="weight decay shrinks all weights to nothing",
        cause="collapsed-weights",
        level=Level.HYPERPARAMETER,
        by=120,
        source="H04",
    ),
)
