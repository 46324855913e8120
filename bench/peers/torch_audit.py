"""torch-audit in its zero-touch mode, `autopatch(model, optimizer)`, auditing every step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.peers.peer import Alarm, Peer

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

# An alarm counts for every rule that its description or its remedy points to. TA100's remedy is
# "check learning rate, loss scaling, or initialization", TA102's "learning rate or clipping".
PEER = Peer(
    name="torch-audit",
    covers="inputs, gradients, dead layers, optimizer settings, architecture",
    means={
        "TA100": (  # NaN or infinity in parameters or gradients
            *("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", "nonfinite-inputs"),
            *("hidden-nonfinite", "empty-targets", "collapsing-loss-scale", "skipped-steps"),
            *("huge-updates", "growing-activations", "unusable-learning-rate"),
        ),
        "TA102": (  # gradient norm over 100
            *("exploding-gradients", "growing-activations", "huge-updates", "summed-loss"),
            *("late-clipping", "undivided-accumulation", "uncleared-gradients"),
            *("unusable-learning-rate", "missing-warmup"),
        ),
        "TA103": (  # a gradient of exactly zero
            *("dead-gradients", "dead-units", "all-zero-gradients", "vanishing-gradients"),
            *("step-without-backward", "single-class-softmax", "identical-rows"),
            *("saturated-units", "unreached-parameters"),
        ),
        "TA104": (  # no gradient at all
            *("step-without-backward", "unreached-parameters", "all-zero-gradients"),
            *("motionless-weights", "parameters-outside-model"),
        ),
        "TA105": ("dead-units", "dead-gradients"),  # over 90 % zeros behind an activation
        "TA301": ("unscaled-inputs",),  # inputs over 50
        "TA302": ("unscaled-inputs",),  # inputs without variance
        "TA304": ("tiny-batch-norm",),  # under 8 samples with batch norm
        "TA405": ("dead-units", "collapsed-weights", "identical-rows"),  # filters of zeros
        "TA500": ("unreached-parameters",),  # a layer is never called
    },
    # Tensor-core alignment, memory layout, precision; bias before a norm, even kernels, AdamW for
    # Adam, decay on norms and embeddings. TA000 is an error of its own.
    advice=frozenset(
        {"TA000", "TA200", "TA201", "TA202", "TA203", "TA400", "TA401", "TA402", "TA403", "TA404"}
    ),
)


class Monitor:
    """An auditor of one model and one optimizer."""

    def __init__(self, model: "nn.Module", optimizer: "Optimizer") -> None:
        from torch_audit import autopatch

        self._auditor = autopatch(model, optimizer=optimizer, every_n_steps=1)

    def step(self, loss: float | None) -> None:
        """It sees steps by itself."""

    def alarms(self) -> Sequence[Alarm]:
        """The rules that fired, with the first step of each: `INFO` is a note."""
        first: dict[tuple[str, bool], int] = {}
        for each in self._auditor.finish().findings:
            first.setdefault((each.rule_id, each.severity.value == "INFO"), each.step or 0)
        return [Alarm(name, note, step) for (name, note), step in first.items()]
