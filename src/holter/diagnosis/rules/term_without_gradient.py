"""A loss term without gradient makes up most of the loss."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LOSS_CONSTANT_PART


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(LOSS, LOSS_CONSTANT_PART),
    preview=True,
)
def term_without_gradient(
    facts: Facts,
    *,
    min_readings: Annotated[int, "sampled steps needed"] = 8,
    min_share: Annotated[float, "share of the loss, in the second half of what was read"] = 0.5,
    min_change: Annotated[float, "relative change between steps, by which it is computed"] = 1e-3,
) -> Iterator[Verdict]:
    """A loss term without gradient makes up most of the loss.

    ## What it does
    Computes the value of the terms outside the autograd graph: the loss minus the terms inside it.
    It reports a positive remainder that makes up most of a positive loss and changes from step to
    step, so it is not a fixed constant.

    ## Why it matters
    The term counts in the loss but is never optimised. It was detached, computed under `no_grad`,
    converted by `.item()`, computed from an `argmax`, or is a derivative without
    `create_graph=True`.

    ## Example
    ```python
    du = torch.autograd.grad(u.sum(), x, retain_graph=True)[0]   # bad
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]   # good
    ```

    ## What to do
    Print `term.requires_grad` for each term of the loss. Compute the one without gradient from the
    model outputs, with differentiable operations; pass `create_graph=True` to
    `torch.autograd.grad`.

    ## When it is wrong
    The term is added only for logging, or belongs to a part that is frozen in this phase.

    ## How to confirm
    - Print `requires_grad` of each term before the sum.
    """
    constant = facts.run[LOSS_CONSTANT_PART].get("")
    losses = [loss for loss in facts.run[LOSS].values() if len(loss)]
    if constant is None or len(constant) < min_readings or len(losses) != 1:
        yield term_without_gradient.not_examined("too few steps of a single loss")
        return
    (loss,) = losses
    _, here, there = np.intersect1d(constant.steps, loss.steps, return_indices=True)
    parts, wholes = constant.values[here].astype(float), loss.values[there].astype(float)
    if len(parts) < min_readings or not np.isfinite([parts, wholes]).all():
        yield term_without_gradient.not_examined("too few finite losses")
        return
    if not parts.any():
        yield term_without_gradient.clear("every term of the loss has a gradient")
        return
    steps = constant.steps[here]
    late = steps >= steps[-1] / 2
    is_part = bool(((parts > 0) & (parts <= 1.01 * wholes)).all())
    changes = float(np.ptp(parts)) > min_change * float(np.abs(parts).max())
    share = float(np.median(parts[late] / wholes[late])) if is_part else 0.0
    measured = (
        f"{percent(share)} of the loss is outside the graph"
        if is_part
        else "the terms of the loss without a gradient are not positive"
    )
    if not changes or share < min_share:
        yield term_without_gradient.clear(measured if changes else "the loss adds a fixed number")
        return
    span = (constant.first, constant.last)
    yield term_without_gradient.finding(
        f"{percent(share)} of the loss comes from terms without a gradient: {parts[-1]:.3g} of"
        f" {wholes[-1]:.3g} at step {constant.steps[here][-1]}",
        confidence=Confidence.LIKELY if facts.run_outcome.bad else Confidence.HINT,
        onset=constant.first,
        evidence=(
            Evidence(
                LOSS_CONSTANT_PART,
                span,
                f"between {parts.min():.3g} and {parts.max():.3g} on {len(parts)} sampled steps",
            ),
            Evidence(LOSS, span, f"{wholes[0]:.3g} initially, {wholes[-1]:.3g} at the end"),
        ),
        fix="keep every term differentiable: no `.detach()`, `.item()` or `no_grad` in between,"
        " and `torch.autograd.grad(..., create_graph=True)`",
    )
