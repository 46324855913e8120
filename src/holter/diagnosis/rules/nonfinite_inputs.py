"""The model receives NaN or infinity."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.nonfinite import first_nonfinite
from holter.diagnosis.rule import exception, rule
from holter.record import Series
from holter.record.events import BatchInspected
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import AMP_SCALE, GRAD_TOTAL_NORM, INPUT_NONFINITE, LOSS, Signal

Steps = npt.NDArray[np.int64]

_FIX = "impute or drop these rows where the data is read: `x = x[torch.isfinite(x).all(dim=1)]`"
_VERBS = {LOSS: "the loss is", GRAD_TOTAL_NORM: "the gradients are"}


@exception
def discarded_by_script(facts: Facts, bad: Steps, _: int) -> str | None:
    """The script discarded the gradients of these batches, so they changed no weight."""
    if not len(facts.discarded_steps):
        return None
    return f"the inputs are not finite at step {bad[0]}; the script discarded the gradients"


@exception
def already_nonfinite(facts: Facts, bad: Steps, soon: int) -> str | None:
    """The loss or the gradients were not finite before, so a broken model produced these inputs."""
    first = int(bad[0])
    lost = first_nonfinite(facts, LOSS)
    if lost is not None and lost < first:
        return f"the inputs are not finite from step {first} on, the loss from step {lost} on"
    if _gradients_lost_before(facts, first, soon):
        return f"the inputs are not finite from step {first} on, the gradients were not before"
    return None


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(INPUT_NONFINITE,),
    exceptions=(discarded_by_script, already_nonfinite),
)
def nonfinite_inputs(
    facts: Facts,
    *,
    soon: Annotated[int, "steps within which the loss follows the inputs; it may be sampled"] = 20,
) -> Iterator[Verdict]:
    """The model receives NaN or infinity.

    ## What it does
    Counts NaN and infinities in the first floating-point argument of the model in training. The
    finding is certain if the loss or the gradients become non-finite at that step or soon after. If
    the inputs of the first bad step were not sampled, the rule uses the batch stored by the black
    box; later bad inputs make it likely.

    ## Why it matters
    One such value makes the loss NaN, the gradients with it, and after the next update all weights:
    nothing after that step was learned.

    ## Example
    ```python
    x = (x - x.mean(0)) / x.std(0)                  # bad
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6)  # good
    ```

    ## What to do
    Find the rows with `torch.isfinite`, and impute, mask or drop them where the data is read.
    Standardising a constant column divides by zero: clamp the standard deviation.

    ## When it is wrong
    Only sampled steps and the first bad one are examined. If several models are trained, one may
    receive the output of another; the finding is then a hint.

    ## How to confirm
    - Run `assert torch.isfinite(x).all()` on every batch of one epoch, and print the rows that
      fail.
    """
    for owner, count in facts.run[INPUT_NONFINITE].items():
        if not len(count):
            continue
        bad = count.values > 0
        inspected = None if bad.any() or len(facts.discarded_steps) else _inspected(facts, count)
        if inspected is not None:
            yield _unsampled(inspected)
            continue
        if not bad.any():
            yield nonfinite_inputs.clear(f"the inputs of {owner} are finite on {len(count)} steps")
            continue
        steps = count.steps[bad]
        first, values = int(steps[0]), float(count.values[bad.argmax()])
        symptom = f"the input of {owner} holds {values:.0f} NaN or infinities at step {first}"
        discarded, lost = len(facts.discarded_steps) > 0, first_nonfinite(facts, LOSS)
        signal = None if discarded else _spoiled(facts, steps, soon)
        if signal is not None:
            confidence, onset = Confidence.CERTAIN, first
            effect = Evidence(signal, (first, first + soon), "not finite")
            then = f"{_VERBS[signal]} not finite from there on"
        elif not discarded and lost is not None and lost < first and lost not in count.steps:
            confidence, onset = Confidence.LIKELY if _alone(facts) else Confidence.HINT, lost
            effect = Evidence(LOSS, (lost, first), "not finite")
            then = f"the loss is not finite from step {lost} on, whose inputs were not sampled"
        else:
            yield nonfinite_inputs.excused(facts, steps, soon) or nonfinite_inputs.harmless(
                f"{symptom}; the losses of such steps are finite"
            )
            continue
        yield nonfinite_inputs.finding(
            f"{symptom}; {then}",
            confidence=confidence,
            onset=onset,
            evidence=(
                Evidence(
                    INPUT_NONFINITE,
                    (first, count.last),
                    f"{values:.0f} at step {first}; {len(steps)} of {len(count)} sampled steps",
                    owner,
                ),
                effect,
            ),
            fix=_FIX,
        )


def _inspected(facts: Facts, count: Series) -> BatchInspected | None:
    """Return the batch of the first non-finite loss, if it is bad and was not read in time."""
    lost = first_nonfinite(facts, LOSS)
    for event in facts.run.events_of(BatchInspected):
        if event.what.nonfinite and event.what.of == lost and lost not in count.steps:
            return event.what
    return None


def _unsampled(batch: BatchInspected) -> Finding:
    where = f"the batch of step {batch.of} from {batch.loader}"
    return nonfinite_inputs.finding(
        f"{where} holds {batch.nonfinite} NaN or infinities; the loss is not finite from there on",
        confidence=Confidence.CERTAIN,
        onset=batch.of,
        evidence=(
            Evidence(
                LOSS,
                (batch.of, batch.of),
                f"not finite; {batch.nonfinite} of {batch.elements} numbers of the batch are not",
            ),
        ),
        fix=_FIX,
    )


def _spoiled(facts: Facts, bad: Steps, soon: int) -> Signal | None:
    """Return which of loss and gradients becomes non-finite by inputs that are bad at these steps.

    Neither does if the model had finite losses on such inputs before, or if the gradients were
    not finite just before.
    """
    first = int(bad[0])
    if _gradients_lost_before(facts, first, soon):
        return None
    for series in _all(facts, LOSS):
        finite = np.isfinite(series.values)
        lost = series.steps[~finite]
        handled = np.isin(series.steps[finite], bad).any()
        if len(lost) and first <= lost[0] <= first + soon and not handled:
            return LOSS
    for series in _all(facts, GRAD_TOTAL_NORM):
        there = np.isin(series.steps, bad)
        if there.any() and not np.isfinite(series.values[there]).any():
            return GRAD_TOTAL_NORM
    return None


def _gradients_lost_before(facts: Facts, step: int, soon: int) -> bool:
    """Whether the last gradient norm shortly before a step is not finite; never so with AMP."""
    if AMP_SCALE in facts.run:
        return False
    for series in _all(facts, GRAD_TOTAL_NORM):
        place = int(np.searchsorted(series.steps, step)) - 1
        recent = place >= 0 and step - int(series.steps[place]) <= soon
        if recent and not np.isfinite(series.values[place]):
            return True
    return False


def _all(facts: Facts, signal: Signal) -> list[Series]:
    return [*facts.run[signal].values()] if signal in facts.run else []


def _alone(facts: Facts) -> bool:
    """Whether one model is trained: of several, one may be given what another has produced."""
    return sum(len(series) > 0 for series in _all(facts, INPUT_NONFINITE)) == 1
