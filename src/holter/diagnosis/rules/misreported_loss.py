"""The loss that is logged is not the loss that is optimised."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LOSS_LOGGED

_STEADY = 0.01  # scatter of a ratio that is one factor
_SAME = 0.02  # a factor that differs from 1 by less is none


# What the log hides is told as its consequence: first of all a reader has to know that it lies.
_HIDDEN = ("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", "exploding-gradients")


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(LOSS, LOSS_LOGGED),
)
def misreported_loss(facts: Facts, *, min_steps: int = 10) -> Iterator[Verdict]:
    """The loss that is logged is not the loss that is optimised.

    ## What it does
    Compares what `backward()` was called on with what the loop logged for the same steps. It speaks
    where the loss was NaN or infinite and the log shows a number, whichever side of `step()` the
    log call stands on; and where one and the same value was logged on at least `min_steps` steps,
    zero for instance, while the loss was another each time. A running mean is no misreport, and a
    constant factor, as of a batch size or of accumulated micro-batches, is only noted.

    ## Why it matters
    A log that replaces NaN by the last mean, or by 0, shows a clean curve of a model that has been
    destroyed. The true loss goes on into the weights, and hours pass before anybody sees it.

    ## What to do
    Switch the filter of the log off (`logging_nan_inf_filter=False` in a Trainer), or let it count
    what it has left out. Then look for the first step that was not finite, and go back to the last
    checkpoint before it.

    ## When it is wrong
    A loop that logs another quantity under the name of the loss on purpose, and skips steps of a
    loss that is not finite itself: then the weights are sound. Look at whether they are finite.

    ## How to confirm
    - Print `loss.item()` right before `backward()` at the step named.
    - See whether the weights are finite: `all(p.isfinite().all() for p in model.parameters())`.
    """
    for owner, logged in facts.run[LOSS_LOGGED].items():
        loss = facts.run[LOSS].get(owner)
        if loss is None or not len(loss) or not len(logged):
            yield misreported_loss.not_examined(f"no loss and log of the same steps{of(owner)}")
            continue
        hidden = _hidden(loss, logged)
        if len(hidden):
            yield _hides(owner, loss, logged, hidden)
            continue
        yield from _compare(owner, loss, logged, min_steps)


def _hides(owner: str, loss: Series, logged: Series, hidden: npt.NDArray[np.int64]) -> Verdict:
    first, last = int(hidden[0]), int(hidden[-1])
    shown = logged.values[np.isin(logged.steps, hidden)]
    value = f"{shown[0]:.4g}" if (shown == shown[0]).all() else f"{shown.min():.4g} or more"
    before = loss.steps[np.isfinite(loss.values) & (loss.steps < first)]
    broken = int((~np.isfinite(loss.values)).sum())
    return misreported_loss.finding(
        f"the log hides {broken} losses{of(owner)} that are NaN or infinite: it shows {value} from"
        f" step {first} on; the last finite loss is that of step"
        f" {int(before[-1]) if len(before) else 'none'}",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                LOSS,
                (max(first - 5, 0), last),
                f"{broken} are not finite, since step {first}",
                owner,
            ),
            Evidence(
                LOSS_LOGGED,
                (max(first - 5, 0), last),
                f"finite on {len(hidden)} of these steps: {value}",
                owner,
            ),
        ),
        fix="log what backward() is called on, without replacing NaN; go back to a checkpoint from"
        f" before step {first}",
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
            f"the log shows {shown[0]:.4g} on all {len(steps)} steps{of(owner)}, but the loss is"
            f" {true.min():.4g} to {true.max():.4g}",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(LOSS_LOGGED, (first, last), f"{shown[0]:.4g} each time", owner),
                Evidence(LOSS, (first, last), f"{true.min():.4g} to {true.max():.4g}", owner),
            ),
            fix="log the loss of the step: loss.detach(), not a variable that is never updated",
        )
        return
    factor = _factor(true, shown)
    if factor is not None:
        yield misreported_loss.normal(
            f"the log shows {factor:.4g} times the loss that is optimised{of(owner)}, as with"
            " sums over a batch or accumulated micro-batches",
            (Evidence(LOSS_LOGGED, (first, last), f"{factor:.4g} times the loss", owner),),
        )
    equal = int(np.isclose(true, shown, rtol=1e-3).sum())
    yield misreported_loss.clear(
        f"the log shows the loss of {equal} of {len(steps)} steps{of(owner)}, and no number where"
        " there is none"
    )


def _hidden(loss: Series, logged: Series) -> npt.NDArray[np.int64]:
    """Steps with a finite log and a loss that is not, also if the log is a step ahead.

    What is logged before `backward()` is filed under the step before.
    """
    broken = loss.steps[~np.isfinite(loss.values)]
    sound = logged.steps[np.isfinite(logged.values)]
    candidates = np.intersect1d(broken, sound)
    surely = np.isin(candidates + 1, broken) | np.isin(candidates - 1, sound)
    return candidates[surely]


def _factor(true: npt.NDArray[np.float64], shown: npt.NDArray[np.float64]) -> float | None:
    """The factor between loss and log, if it is one and not 1."""
    if (true <= 0).any() or (shown <= 0).any():
        return None
    ratios = shown / true
    factor = float(np.median(ratios))
    steady = float(np.median(np.abs(ratios / factor - 1))) < _STEADY
    return factor if steady and abs(factor - 1) > _SAME else None
