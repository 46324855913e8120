"""The learning rate is too high for the curvature of the loss: steps overshoot."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number, percent
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    SHARPNESS_BOUND,
    SHARPNESS_DESCENT,
    SHARPNESS_EIGENVALUE,
    SHARPNESS_RATE,
    SHARPNESS_RESIDUAL,
)

_NEAR = 0.7  # share of the bound where the edge of stability begins


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
def unstable_curvature(
    facts: Facts,
    *,
    max_ratio: Annotated[float, "largest eigenvalue over the optimizer's bound"] = 2.0,
    min_burst: Annotated[float, "times its start: there the bound itself is the limit"] = 10.0,
    max_error: Annotated[float, "relative error of the eigenvalue that still clears"] = 0.1,
) -> Iterator[Verdict]:
    """The learning rate is too high for the curvature of the loss: steps overshoot.

    ## What it does
    Compares the largest eigenvalue of the loss's Hessian with the optimizer's stability bound:
    2 / lr for SGD, (2 + 2 momentum) / lr with momentum, and the same for Adam with the
    preconditioned Hessian. It reports an eigenvalue far above the bound if 20 steps on the same
    batches raise their loss, and steps with a learning rate inside the bound lower it.

    ## Why it matters
    Above the bound each step overshoots the minimum by more than the previous one. The loss jumps,
    weights grow, units die, and training continues from a worse point.

    ## Example
    ```python
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)   # bad
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)  # good
    ```

    ## What to do
    Lower the learning rate below the bound, or start with a warm-up: curvature often falls in the
    first hundreds of steps, and the full rate is stable then. Normalisation layers and smaller
    initial weights lower the curvature itself.

    ## When it is wrong
    Wide networks may leave a sharp minimum and settle in a flatter one after more than 20 steps.
    Curvature is measured on a few batches: on very small ones it is larger than on all data. The
    rule misses most learning rates that are too high for Adam: after a few such steps the weights
    are in a flat region.

    ## How to confirm
    - Repeat the first 100 steps with the learning rate divided by the ratio: the loss should fall
      from the beginning.
    - `holter try lr-range` shows where the loss begins to rise.
    """
    trial, bounds = next(iter(facts.run[SHARPNESS_BOUND].items()))
    eigenvalue = float(facts.run[SHARPNESS_EIGENVALUE][trial].values[-1])
    bound, rate = float(bounds.values[-1]), float(facts.run[SHARPNESS_RATE][""].values[-1])
    error = float(facts.run[SHARPNESS_RESIDUAL][trial].values[-1])
    descent = facts.run[SHARPNESS_DESCENT]
    present, reduced = descent["as set"], descent.get("reduced")
    if not np.isfinite([eigenvalue, present.values[0]]).all():
        yield unstable_curvature.not_examined(
            f"the loss is {present.values[0]:.3g} and its largest eigenvalue {eigenvalue:.3g}"
        )
        return
    ratio = eigenvalue / bound
    hessian = "the Hessian" if trial == "hessian" else "the preconditioned Hessian"
    measured = (
        f"the largest eigenvalue of {hessian} is {eigenvalue:.3g}, {ratio:.2g} times the stability"
        f" bound {bound:.3g} at lr={rate:.3g}"
    )
    overshoots = _overshoots(present) and ratio > (1 if _bursts(present, min_burst) else max_ratio)
    if not overshoots and ratio <= max_ratio and error > max_error:
        yield unstable_curvature.not_examined(f"{measured}, with an error of {percent(error)}")
    elif not overshoots and ratio > max_ratio:
        yield unstable_curvature.harmless(
            f"{measured}, but {len(present) - 1} steps on the same batches take the loss from"
            f" {present.values[0]:.3g} to {present.values[-1]:.3g}"
        )
    elif not overshoots:
        if ratio > _NEAR and _falls(present):
            yield unstable_curvature.normal(
                f"{measured}: the edge of stability, common in training"
            )
        yield unstable_curvature.clear(measured)
    elif reduced is None or not _falls(reduced):
        yield unstable_curvature.not_examined(
            f"{measured}, but a lower learning rate does not lower the loss of the same batches"
        )
    else:
        yield unstable_curvature.finding(
            f"the curvature of the loss is {ratio:.3g} times the stability bound at lr={rate:.3g}:"
            f" {len(present) - 1} steps on the same batches take the loss from"
            f" {present.values[0]:.3g} to {number(present.values[-1])}; with"
            f" lr={0.5 * rate / ratio:.2g} it falls to {reduced.values[-1]:.3g}",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(SHARPNESS_EIGENVALUE, (0, 0), f"{eigenvalue:.3g}, of {hessian}", trial),
                Evidence(SHARPNESS_BOUND, (0, 0), f"{bound:.3g}: above it steps overshoot", trial),
                _shown(present, "as set"),
                _shown(reduced, "reduced"),
            ),
            fix=f"lower the learning rate from {rate:.3g} to below {rate / ratio:.2g}, or start"
            " with a warm-up",
        )


def _overshoots(loss: Series) -> bool:
    """Whether the first step raises a loss, and it ends above its start."""
    if not np.isfinite(loss.values).all():
        return True
    return len(loss) > 1 and bool(loss.values[1] > loss.values[0] < loss.values[-1])


def _bursts(loss: Series, min_burst: float) -> bool:
    first, last = loss.values[0], loss.values[-1]
    return not np.isfinite(loss.values).all() or bool(last > first + min_burst * abs(first))


def _falls(loss: Series) -> bool:
    return bool(np.isfinite(loss.values).all() and loss.values[-1] < loss.values[0])


def _shown(loss: Series, trial: str) -> Evidence:
    says = f"loss {loss.values[0]:.3g}, {number(loss.values[1])}, ... {number(loss.values[-1])}"
    return Evidence(SHARPNESS_DESCENT, (loss.first, loss.last), says, trial)
