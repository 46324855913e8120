"""The model is given NaN or infinity."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.nonfinite import first_nonfinite
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import AMP_SCALE, GRAD_TOTAL_NORM, INPUT_NONFINITE, LOSS, Signal

_SOON = 20  # steps: a loss may be read only every 16th
_WORDS = {LOSS: "the loss is", GRAD_TOTAL_NORM: "gradients are"}


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(INPUT_NONFINITE,),
)
def nonfinite_inputs(facts: Facts) -> Iterator[Verdict]:
    """The model is given NaN or infinity.

    ## What it does
    Looks at the first floating-point tensor that the model is called with in training. NaN or
    infinity there is a finding if the loss, or the gradients, first were not finite at that step or
    soon after. It is likely, not certain, where the loss was lost before, at a step whose inputs
    were not read (the first step often is one). If loss and gradients are finite where inputs are
    not, the model can take it, and it is noted as normal; so is a rare bad batch whose gradients
    the script itself throws away.

    ## Why it matters
    One such value makes the loss NaN, the gradients with it, and after the next update all weights:
    nothing after that step was learned.

    ## What to do
    Find the rows by `torch.isfinite`, and mend, mask or drop them where the data is read.
    Standardising a column that is constant divides by zero: add a small number to the standard
    deviation.

    ## When it is wrong
    Models that mask missing values themselves; then nothing becomes non-finite after it and this
    rule only notes it. Only sampled steps are seen: a bad batch may go by unseen.

    ## How to confirm
    - Run `assert torch.isfinite(x).all()` on every batch of one epoch, and print the rows that
      fail.
    """
    for owner, count in facts.run[INPUT_NONFINITE].items():
        if not len(count):
            continue
        bad = count.values > 0
        if not bad.any():
            yield nonfinite_inputs.clear(f"the inputs of {owner} are finite on {len(count)} steps")
            continue
        first, values = int(count.steps[bad.argmax()]), float(count.values[bad.argmax()])
        said = f"{owner} is given {values:.0f} NaN or infinities at step {first}"
        lost = first_nonfinite(facts, LOSS)
        evidence = Evidence(
            INPUT_NONFINITE,
            (first, count.last),
            f"{values:.0f} at step {first}; {int(bad.sum())} of {len(count)} sampled steps",
            owner,
        )
        fix = "mend or drop the rows with NaN or infinity where the data is read"
        if len(facts.discarded_steps):
            yield nonfinite_inputs.normal(f"{said}; the script threw the gradients away")
            yield nonfinite_inputs.clear(f"{said}; the script threw the gradients away")
            continue
        signal = _spoiled(facts, count.steps[bad])
        if signal is not None:
            yield nonfinite_inputs.finding(
                f"{said}, and {_WORDS[signal]} not finite from there",
                confidence=Confidence.CERTAIN,
                onset=first,
                evidence=(evidence, Evidence(signal, (first, first + _SOON), "not finite")),
                fix=fix,
            )
        elif lost is not None and lost < first and lost not in count.steps and _alone(facts):
            yield nonfinite_inputs.finding(
                f"{said}; the loss is not finite since step {lost}, whose inputs were not read",
                confidence=Confidence.LIKELY,
                onset=lost,
                evidence=(evidence, Evidence(LOSS, (lost, first), "not finite")),
                fix=fix,
            )
        else:
            came = "not the first that is not finite" if lost is not None else "the loss is finite"
            yield nonfinite_inputs.normal(f"{said}; {came}")
            yield nonfinite_inputs.clear(f"{said}; {came}")


def _spoiled(facts: Facts, bad: npt.NDArray[np.int64]) -> Signal | None:
    """Which of loss and gradients is lost by inputs that are bad at these steps.

    A model that had finite losses on such inputs before can take them. And where gradients were
    lost just before, the inputs may be made by a model that was spoiled already, as those of a
    discriminator are; with AMP that is no sign.
    """
    first = int(bad[0])
    losses, gradients = _all(facts, LOSS), _all(facts, GRAD_TOTAL_NORM)
    if AMP_SCALE not in facts.run and any(_lost_before(each, first) for each in gradients):
        return None
    for series in losses:
        fine = np.isfinite(series.values)
        lost = series.steps[~fine]
        taken = np.isin(series.steps[fine], bad).any()
        if len(lost) and first <= lost[0] <= first + _SOON and not taken:
            return LOSS
    for series in gradients:
        there = np.isin(series.steps, bad)
        if there.any() and not np.isfinite(series.values[there]).any():
            return GRAD_TOTAL_NORM
    return None


def _lost_before(series: Series, step: int) -> bool:
    """Whether the last reading before a step, not long ago, was not finite."""
    place = int(np.searchsorted(series.steps, step)) - 1
    recent = place >= 0 and step - int(series.steps[place]) <= _SOON
    return recent and not np.isfinite(series.values[place])


def _all(facts: Facts, signal: Signal) -> list[Series]:
    return [*facts.run[signal].values()] if signal in facts.run else []


def _alone(facts: Facts) -> bool:
    """Whether one model is trained: of several, one may be given what another has made."""
    return sum(len(each) > 0 for each in _all(facts, INPUT_NONFINITE)) == 1
