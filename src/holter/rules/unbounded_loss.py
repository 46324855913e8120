"""The negative of a loss is minimised."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import only_function, readings
from holter.run import Run
from holter.signals import LOSS, LOSS_ROOT_SHARE

_MOST = 0.9  # share of steps
_WITHOUT_A_FLOOR = ("nll_loss", "gaussian_nll_loss", "poisson_nll_loss", "kl_div")


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(LOSS_ROOT_SHARE,),
    explains=(
        "diverging-loss",
        "oscillating-loss",
        "loss-spike",
        "exploding-gradients",
        "exploding-weights",
        "nonfinite-loss",
        "nonfinite-gradient",
        "nonfinite-weights",
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
        "huge-updates",
        "vanishing-gradients",
        "validation-mismatch",
        "loss-accuracy-parting",
        "large-initial-loss",
        "dead-units",
        "saturated-units",
        "identical-rows",
        "constant-clipping",
        "growing-activations",
    ),
)
def unbounded_loss(run: Run, *, min_steps: int = 5) -> Iterator[Verdict]:
    """The negative of a loss is minimised.

    ## What it does
    Compares what `backward()` is called on with what the loss function returned. It speaks where
    the one is the negative of the other on at least `min_steps` sampled steps, for loss functions
    that cannot go under zero, and only one optimizer is at work.

    ## Why it matters
    Going down on the negative of a loss makes predictions worse, for as long as one likes: the
    number falls, which looks like progress, and has no floor.

    ## What to do
    Call `backward()` on the loss itself. To maximise a likelihood, minimise its negative once.

    ## When it is wrong
    Adversarial training, which climbs on purpose, mostly has an optimizer for each side and is left
    out. A reward written as a negative loss would be an exception.

    ## How to confirm
    - Look at the accuracy: it falls under that of guessing.
    """
    shares = readings(run, LOSS_ROOT_SHARE, "")
    if len(run.meta.get("optimizers", ())) > 1 or len([*run[LOSS]] if LOSS in run else ()) > 1:
        yield unbounded_loss.not_examined("several optimizers are at work: one may climb")
        return
    if len(shares) < min_steps:
        yield unbounded_loss.not_examined(f"{len(shares)} of the {min_steps} steps needed")
        return
    usual, function = float(np.median(shares)), only_function(run)
    said = f"backward is called on {usual:.3g} times what the loss function returned"
    if usual >= 0 or np.mean(shares < 0) < _MOST or function in _WITHOUT_A_FLOOR:
        yield unbounded_loss.clear(said)
        return
    series = run[LOSS_ROOT_SHARE][""]
    yield unbounded_loss.finding(
        f"{said}: training makes the predictions worse",
        confidence=Confidence.CERTAIN,
        onset=series.first,
        evidence=(
            Evidence(LOSS_ROOT_SHARE, (series.first, series.last), f"median {usual:.3g}"),
            *(
                Evidence(LOSS, (each.first, each.last), f"{each.values[-1]:.3g} at last", owner)
                for owner, each in (run[LOSS].items() if LOSS in run else ())
                if len(each)
            ),
        ),
        fix="take the minus sign away: call backward on the loss itself",
    )
