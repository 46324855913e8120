"""torchmortem, attached as its quick start says: `Autopsy(model, optimizer)`, a step a step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.peers.peer import Alarm, Peer

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

# By the title of a finding without its layer. An alarm counts for every rule that its title, its
# explanation or one of its remedies points to, however many other causes it lists beside.
_TOO_FAST = ("huge-updates", "missing-warmup", "unusable-learning-rate", "late-clipping")
_STUCK = ("motionless-weights", "tiny-updates", "unreached-parameters", "all-zero-gradients")
PEER = Peer(
    name="torchmortem",
    covers="gradients, updates, weights, activations, loss curve",
    means={
        "Vanishing gradients detected": (
            *("vanishing-gradients", "dead-gradients", "all-zero-gradients"),
            *("fading-activations", "saturated-units", "unreached-parameters"),
        ),
        "Exploding gradients detected": (
            *("exploding-gradients", "growing-activations", "large-initial-loss", "summed-loss"),
            *("undivided-accumulation", "uncleared-gradients", *_TOO_FAST),
        ),
        "Gradient stalling": (
            *("dead-gradients", "vanishing-gradients", "all-zero-gradients", "dead-units"),
            *("unreached-parameters", "single-class-softmax", "identical-rows"),
        ),
        "Dead units": ("dead-units", "dead-gradients"),
        "Activation saturation": ("saturated-units",),
        "Update ratio too low": (
            *("tiny-updates", "motionless-weights", "decayed-learning-rate", "constant-clipping"),
            *("rounded-away-updates", "vanishing-gradients", "unusable-learning-rate"),
        ),
        "Update ratio too high": (
            *("summed-loss", "undivided-accumulation", "exploding-gradients", *_TOO_FAST),
        ),
        "Training divergence detected": (
            *("diverging-loss", "unbounded-loss", "exploding-gradients", "summed-loss"),
            *("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", *_TOO_FAST),
        ),
        "Loss plateau detected": (
            *("loss-plateau", "flat-loss", "loss-at-constant-predictor", "underfitting"),
            *("tiny-updates", "decayed-learning-rate"),
        ),
        "Rank collapse": (
            *("identical-rows", "collapsed-weights", "loss-at-constant-predictor"),
            *("underfitting", "validation-better-than-training", "huge-updates"),
        ),
        "High gradient noise (low SNR)": ("oscillating-gradients", "tiny-batch-norm"),
        "Weight norm explosion": (
            *("exploding-weights", "exploding-gradients", "unbounded-loss", *_TOO_FAST),
        ),
        "Stagnant weight norms": (
            *("parameters-outside-optimizer", "parameters-outside-model", "step-without-backward"),
            *("rounded-away-updates", "vanishing-gradients", "decayed-learning-rate", *_STUCK),
        ),
        "Inter-layer weight norm imbalance": ("growing-activations", "large-initial-loss"),
    },
)


class Monitor:
    """An autopsy of one model."""

    def __init__(self, model: "nn.Module", optimizer: "Optimizer") -> None:
        from torchmortem import Autopsy

        self._autopsy = Autopsy(model, optimizer=optimizer)
        self._autopsy.attach()

    def step(self, loss: float | None) -> None:
        """Tell it of a step, as the training loop would."""
        self._autopsy.step(loss=loss)

    def alarms(self) -> Sequence[Alarm]:
        """What its report finds: `INFO` is a note."""
        self._autopsy.detach()
        report = self._autopsy.get_report()
        return [
            Alarm(each.title.partition(" in ")[0], note=each.severity.name == "INFO")
            for each in (report.findings if report else ())
        ]
