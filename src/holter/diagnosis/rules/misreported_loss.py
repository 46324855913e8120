"""The logged loss is not the optimised loss."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LOSS_LOGGED

_STEADY = 0.01  # scatter of a ratio that is one factor
_SAME = 0.02  # distance from 1 below which a factor is none

# A log that hides NaN comes first: what it hides is shown as its consequence.
_HIDDEN = ("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", "exploding-gradients")


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(LOSS, LOSS_LOGGED),
    preview=True,
)
def misreported_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps with both a loss and a logged loss"] = 10,
) -> Iterator[Verdict]:
    """The logged loss is not the optimised loss.

    ## What it does
    Compares the loss on which `backward()` was called with the logged values of the same steps. It
    reports a log that shows finite numbers where the loss is NaN or infinite, and a log that shows
    a constant value while the loss changes. A running mean is fine, and a constant factor is only
    noted.

    ## Why it matters
    A log that replaces NaN by the last mean, or by 0, shows a clean curve although the weights are
    already NaN. It may take hours until someone notices.

    ## Example
    ```python
    log(loss=0.0 if loss.isnan() else loss.item())   # bad
    log(loss=loss.item())                            # good
    ```

    ## What to do
    Disable the filter of the log (`logging_nan_inf_filter=False` in a Trainer), or let it count the
    filtered values. Then find the first step that was not finite, and restart from the last
    checkpoint before it.

    ## When it is wrong
    A loop that deliberately logs a different quantity under the name of the loss, or that skips
    steps with a non-finite loss: the weights are then intact. Check whether they are finite.

    ## How to confirm
    - Print `loss.item()` right before `backward()` at the reported step.
    - Check the weights: `all(p.isfinite().all() for p in model.parameters())`.
    """
    for owner, logged in facts.run[LOSS_LOGGED].items():
        loss = facts.run[LOSS].get(owner)
        if loss is None or not len(loss) or not len(logged):
            yield misreported_loss.not_examined(
                f"no step has both a loss and a logged loss{of(owner)}"
            )
            continue
        hidden = _hidden(loss, logged)
        if len(hidden):
            yield _hides(owner, loss, logged, hidden)
            continue
        yield from _compare(owner, loss, logged, min_steps)


def _hides(owner: str, loss: Series, logged: Series, hidden: npt.NDArray[np.int64]) -> Verdict:
    first, last = int(hidden[0]), int(hidden[-1])
    shown = logged.values[np.isin(logged.steps, hidden)]
    value = f"{shown[0]:.3g}" if (shown == shown[0]).all() else f"{shown.min():.3g} or more"
    before = loss.steps[np.isfinite(loss.values) & (loss.steps < first)]
    broken = int((~np.isfinite(loss.values)).sum())
    return misreported_loss.finding(
        f"the log hides {broken} losses{of(owner)} that are NaN or infinite: it shows {value} from"
        f" step {first} on; last finite loss at step {int(before[-1]) if len(before) else 'none'}",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                LOSS,
                (max(first - 5, 0), last),
                f"{broken} not finite, since step {first}",
                owner,
            ),
            Evidence(
                LOSS_LOGGED,
                (max(first - 5, 0), last),
                f"finite on {len(hidden)} of these steps: {value}",
                owner,
            ),
        ),
        fix="log `loss.item()` of the loss passed to backward(), without replacing NaN; restart"
        f" from a checkpoint before step {first}",
        explains=_HIDDEN,
    )


def _compare(owner: str, loss: Series, logged: Series, min_steps: int) -> Iterator[Verdict]:
    steps, of_loss, of_logged = np.intersect1d(loss.steps, logged.steps, return_indices=True)
    true, shown = loss.values[of_loss].astype(float), logged.values[of_logged].astype(float)
    kept = np.isfinite(true) & np.isfinite(shown)
    steps, true, shown = steps[kept], true[kept], shown[kept]
    if len(steps) < min_steps:
        yield misreported_loss.not_examined(
            f"{len(steps)} of the {min_steps} steps with a loss and a log needed{of(owner)}"
        )
        return
    first, last = int(steps[0]), int(steps[-1])
    if (shown == shown[0]).all() and len(np.unique(true)) > len(true) // 2:
        yield misreported_loss.finding(
            f"the log shows {shown[0]:.3g} on all {len(steps)} steps{of(owner)}, but the loss is"
            f" {true.min():.3g} to {true.max():.3g}",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(LOSS_LOGGED, (first, last), f"{shown[0]:.3g} each time", owner),
                Evidence(LOSS, (first, last), f"{true.min():.3g} to {true.max():.3g}", owner),
            ),
            fix="log the loss of the step, `loss.item()`, not a variable that is never updated",
        )
        return
    factor = _factor(true, shown)
    if factor is not None:
        yield misreported_loss.normal(
            f"the log shows {factor:.3g} times the optimised loss{of(owner)}, as with sums over a"
            " batch or accumulated micro-batches",
            (Evidence(LOSS_LOGGED, (first, last), f"{factor:.3g} times the loss", owner),),
        )
    equal = int(np.isclose(true, shown, rtol=1e-3).sum())
    yield misreported_loss.clear(
        f"the log equals the loss on {equal} of {len(steps)} steps{of(owner)} and hides no NaN"
    )


def _hidden(loss: Series, logged: Series) -> npt.NDArray[np.int64]:
    """Return the steps with a finite log and a non-finite loss, also if the log is a step ahead.

    What is logged before `backward()` belongs to the step before.
    """
    broken = loss.steps[~np.isfinite(loss.values)]
    finite = logged.steps[np.isfinite(logged.values)]
    candidates = np.intersect1d(broken, finite)
    surely = np.isin(candidates + 1, broken) | np.isin(candidates - 1, finite)
    return candidates[surely]


def _factor(true: npt.NDArray[np.float64], shown: npt.NDArray[np.float64]) -> float | None:
    """Return the constant factor between loss and log, or None if there is none but 1."""
    if (true <= 0).any() or (shown <= 0).any():
        return None
    ratios = shown / true
    factor = float(np.median(ratios))
    steady = float(np.median(np.abs(ratios / factor - 1))) < _STEADY
    return factor if steady and abs(factor - 1) > _SAME else None
