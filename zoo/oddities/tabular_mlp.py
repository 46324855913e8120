"""Sound runs of the tabular MLP that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "tabular-label-smoothing",
        "tabular_mlp",
        ("nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(label_smoothing=0.2)"),
        why="smoothed labels keep the loss far above zero",
    ),
)
