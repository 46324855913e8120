"""Mistakes made in the tabular MLP."""

from holter.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "tabular-softmax-in-model",
        "tabular_mlp",
        ("return self.head(self.body(x))", "return self.head(self.body(x)).softmax(1)"),
        why="the model ends in a softmax, and cross-entropy applies another",
        cause="doubled-softmax",
        level=Level.ARCHITECTURE,
        by=50,
        source="A01",
    ),
    fault(
        "tabular-no-zero-grad",
        "tabular_mlp",
        ("        optimizer.zero_grad()\n", ""),
        why="gradients are never cleared",
        cause="uncleared-gradients",
        level=Level.PROCEDURE,
        by=50,
        source="T01",
    ),
)
