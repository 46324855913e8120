"""The learning rate is too high for the curvature of the loss: steps overshoot."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    SHARPNESS_BOUND,
    SHARPNESS_DESCENT,
    SHARPNESS_EIGENVALUE,
    SHARPNESS_RATE,
    SHARPNESS_RESIDUAL,
)

_NEAR = 0.7  # share of the bound from which training is at the edge of stability
_FAR = 10  # times its start: a loss that has left for good
_EXACT = 0.1  # an eigenvalue that may be off by more only bounds the true one from below


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(
        SHARPNESS_EIGENVALUE,
        SHARPNESS_RESIDUAL,
        SHARPNESS_BOUND,
        SHARPNESS_RATE,
        SHARPNESS_DESCENT,
    ),
    preview=True,
)
def unstable_curvature(facts: Facts, *, max_ratio: float = 2.0) -> Iterator[Verdict]:
    """The learning rate is too high for the curvature of the loss: steps overshoot.

    ## What it does
    Compares the largest eigenvalue of the loss's Hessian with the one that the optimizer bears at
    its learning rate: 2 / lr for SGD, (2 + 2 momentum) / lr with momentum, and for Adam the same
    with the Hessian scaled as Adam scales its steps. It speaks where three things come together:
    the eigenvalue is more than `max_ratio` times the bound; steps on the very same batches raise
    their loss and have not brought it under its start after 20 of them; and the same steps with a
    learning rate inside the bound lower it. Where the 20 steps take the loss to over 10 times its
    start, an eigenvalue above the bound itself is enough.

    ## Why it matters
    Above the bound each step overshoots the valley by more than the one before. The loss jumps,
    weights grow, units die, and what is left of the training starts from a worse place.

    ## What to do
    Lower the learning rate to under the bound, or begin with a warm-up: curvature often falls in
    the first hundreds of steps, and the full rate can be borne then. Normalisation layers and
    smaller initial weights lower the curvature itself.

    ## When it is wrong
    Wide networks may leap out of a sharp valley and settle in a flatter one after more than 20
    steps. Curvature was measured on a few batches: on very small ones it is larger than on the
    whole data. Around the bound itself training is sound: it rests there by nature, at the edge of
    stability, and this rule says so. It misses most of Adam's learning rates that are too high:
    after a few such steps the weights are where the loss is flat.

    ## How to confirm
    - Repeat the first 100 steps with the learning rate divided by the ratio: the loss should fall
      from the beginning.
    - `holter try lr-range` shows where the loss begins to rise.
    """
    trial, bounds = next(iter(facts.run[SHARPNESS_BOUND].items()))
    eigenvalue = float(facts.run[SHARPNESS_EIGENVALUE][trial].values[-1])
    bound, rate = float(bounds.values[-1]), float(facts.run[SHARPNESS_RATE][""].values[-1])
    off = float(facts.run[SHARPNESS_RESIDUAL][trial].values[-1])
    descent = facts.run[SHARPNESS_DESCENT]
    present, reduced = descent["as set"], descent.get("reduced")
    if not np.isfinite([eigenvalue, present.values[0]]).all():
        yield unstable_curvature.not_examined(
            f"the loss is {present.values[0]:.3g} and its largest eigenvalue {eigenvalue:.3g}"
        )
        return
    ratio = eigenvalue / bound
    of = "of the Hessian" if trial == "hessian" else "of the preconditioned Hessian"
    says = (
        f"largest eigenvalue {of} {eigenvalue:.3g}; the optimizer bears {bound:.3g} at a learning"
        f" rate of {rate:.3g}"
    )
    overshoots = _overshoots(present) and ratio > (1 if _leaves(present) else max_ratio)
    if not overshoots and ratio <= max_ratio and off > _EXACT:
        yield unstable_curvature.not_examined(f"{says}, but it may be off by {off:.0%}")
    elif not overshoots and ratio > max_ratio:
        yield unstable_curvature.not_examined(
            f"{says}: {ratio:.2g} of it, but {len(present) - 1} steps on the same batches take the"
            f" loss from {present.values[0]:.3g} to {present.values[-1]:.3g}: the two disagree"
        )
    elif not overshoots:
        if ratio > _NEAR and _falls(present):
            yield unstable_curvature.normal(
                f"{says}: {ratio:.2g} of it, the edge of stability, where training rests by nature"
            )
        yield unstable_curvature.clear(f"{says}: {ratio:.2g} of it")
    elif reduced is None or not _falls(reduced):
        yield unstable_curvature.not_examined(
            f"{says}, but a lower learning rate does not lower the loss of the same batches either"
        )
    else:
        yield unstable_curvature.finding(
            f"the curvature of the loss is {ratio:.3g} times what the optimizer bears at a learning"
            f" rate of {rate:.3g}: {len(present) - 1} steps on the same batches take their loss"
            f" from {present.values[0]:.3g} to {present.values[-1]:.3g}; with"
            f" {0.5 * rate / ratio:.2g} it falls to {reduced.values[-1]:.3g}",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(SHARPNESS_EIGENVALUE, (0, 0), f"{eigenvalue:.3g} {of}", trial),
                Evidence(SHARPNESS_BOUND, (0, 0), f"{bound:.3g}: steps overshoot above it", trial),
                _shown(present, "as set"),
                _shown(reduced, "reduced"),
            ),
            fix=f"lower the learning rate from {rate:.3g} to under {rate / ratio:.2g}, or reach it"
            " by a warm-up",
        )


def _overshoots(loss: Series) -> bool:
    """Whether the first step raises a loss and all of them do not bring it under its start."""
    if not np.isfinite(loss.values).all():
        return True
    return len(loss) > 1 and bool(loss.values[1] > loss.values[0] < loss.values[-1])


def _leaves(loss: Series) -> bool:
    first, last = loss.values[0], loss.values[-1]
    return not np.isfinite(loss.values).all() or bool(last > first + _FAR * abs(first))


def _falls(loss: Series) -> bool:
    return bool(np.isfinite(loss.values).all() and loss.values[-1] < loss.values[0])


def _shown(loss: Series, trial: str) -> Evidence:
    says = f"loss {loss.values[0]:.3g}, {loss.values[1]:.3g}, ... {loss.values[-1]:.3g}"
    return Evidence(SHARPNESS_DESCENT, (loss.first, loss.last), says, trial)
