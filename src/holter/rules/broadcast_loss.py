"""Predictions and targets have different shapes, and the loss compares all with all."""

from collections.abc import Iterator

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import last
from holter.run import Run
from holter.signals import TARGET_BROADCAST, TARGET_STD

_MOST = 0.9  # share of steps: the last batch of an epoch may be odd


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(TARGET_BROADCAST,),
    explains=(
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
        "validation-mismatch",
        "constant-validation",
        "oscillating-loss",
        "loss-accuracy-parting",
    ),
)
def broadcast_loss(run: Run, *, min_steps: int = 3) -> Iterator[Verdict]:
    """Predictions and targets have different shapes, and the loss compares all with all.

    ## What it does
    Looks at the shapes that an elementwise loss, such as `F.mse_loss`, is given. It speaks where
    they differ on at least nine of ten sampled steps (at least `min_steps`) and targets vary: then
    (N,) against (N, 1) becomes (N, N), each prediction compared with every target.

    ## Why it matters
    The best answer to all targets at once is their mean. The model learns that and nothing else,
    with a loss that falls at first and looks like a hard task.

    ## What to do
    Give both the same shape: `prediction.squeeze(1)` or `target.unsqueeze(1)`, and check it once
    with an `assert`.

    ## When it is wrong
    Broadcasting on purpose, such as one target for many predictions of an ensemble.

    ## How to confirm
    - Print both shapes before the loss.
    """
    for owner, broadcast in run[TARGET_BROADCAST].items():
        if not len(broadcast):
            continue
        share = float(broadcast.values.mean())
        spread = last(run, TARGET_STD, owner)
        if share < _MOST or spread == 0:
            yield broadcast_loss.clear(
                f"{owner} is given equal shapes on {1 - share:.0%} of {len(broadcast)} steps"
            )
        elif len(broadcast) < min_steps:
            yield broadcast_loss.not_examined(f"{len(broadcast)} of the {min_steps} steps needed")
        else:
            yield broadcast_loss.finding(
                f"{owner} is given predictions and targets of different shapes on {share:.0%} of"
                f" {len(broadcast)} sampled steps: it compares each prediction with every target",
                confidence=Confidence.CERTAIN,
                onset=broadcast.first,
                evidence=(
                    Evidence(
                        TARGET_BROADCAST,
                        (broadcast.first, broadcast.last),
                        f"shapes differ on {share:.0%} of the sampled steps",
                        owner,
                    ),
                ),
                fix="give both the same shape: prediction.squeeze(1) or target.unsqueeze(1)",
            )
