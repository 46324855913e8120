"""ReduceLROnPlateau has the wrong mode for its metric."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.figures import is_worse_when_higher
from holter.diagnosis.rule import rule
from holter.record import Event, Series
from holter.record.events import FigurePrinted, RateCut
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, SCHEDULE_STEPS, VAL_ACCURACY, VAL_LOSS, Signal

_MATCHES = 2  # printed values that name a metric
_BETTER = {"max": "higher", "min": "lower"}


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LR, SCHEDULE_STEPS),
)
def inverted_plateau(
    facts: Facts,
    *,
    tolerance: Annotated[
        float, "relative deviation of the metric from a recorded one that makes them the same"
    ] = 0.02,
) -> Iterator[Verdict]:
    """ReduceLROnPlateau has the wrong mode for its metric.

    ## What it does
    Compares the metric passed to `ReduceLROnPlateau` when it cuts the learning rate with the losses
    and accuracies of the run, and with the numbers that the script prints. It reports a scheduler
    in mode `max` that receives a loss, and one in mode `min` that receives an accuracy.

    ## Why it matters
    Improvements do not count: the learning rate is cut repeatedly while training goes well, and
    training stalls long before convergence.

    ## Example
    ```python
    ReduceLROnPlateau(optimizer, mode="max").step(val_loss)   # bad
    ReduceLROnPlateau(optimizer, mode="min").step(val_loss)   # good
    ```

    ## What to do
    Set `mode="min"` for a loss or an error, `mode="max"` for an accuracy or another score.

    ## When it is wrong
    A score that happens to equal a recorded loss at each cut.

    ## How to confirm
    - Print the metric and the learning rate after each `scheduler.step(metric)`.
    """
    cuts = facts.run.events_of(RateCut)
    if not cuts:
        yield inverted_plateau.not_examined("no ReduceLROnPlateau has cut the learning rate")
        return
    shown = _shown(facts, cuts, tolerance)
    named = [(cut, _named(facts, cut, tolerance) or shown) for cut in cuts]
    wrong = [(cut, name) for cut, name in named if name]
    if len(wrong) <= len(cuts) / 2:
        yield inverted_plateau.clear(
            f"the metric of {len(cuts)} cuts is not one that gets worse as it gets"
            f" {_BETTER[cuts[0].what.mode]}"
        )
        return
    first, name = wrong[0]
    mode, last = first.what.mode, wrong[-1][0]
    yield inverted_plateau.finding(
        f"ReduceLROnPlateau has mode={mode!r} and receives {name}, for which a {_BETTER[mode]}"
        f" value is worse: it cut the learning rate from {first.what.before:.3g} to"
        f" {last.what.after:.3g} in {len(cuts)} cuts, the first at step {first.step}",
        confidence=Confidence.CERTAIN if len(wrong) > 1 else Confidence.LIKELY,
        onset=first.step,
        evidence=(Evidence(LR, (first.step, last.step), "cut although the metric improved"),),
        fix=f'use `ReduceLROnPlateau(optimizer, mode="{"min" if mode == "max" else "max"}")`',
    )


def _shown(facts: Facts, cuts: Sequence[Event[RateCut]], tolerance: float) -> str:
    """Return under which name the script prints the metric, if that is worse in its direction."""
    is_max = cuts[0].what.mode == "max"
    for event in facts.run.events_of(FigurePrinted):
        figure, matches = event.what, []
        if is_worse_when_higher(figure.name) is not is_max:
            continue
        before = -1
        for cut in cuts:
            matches += [
                any(_is_printed_as(given, value, tolerance) for given in cut.what.given)
                for step, value in zip(figure.steps, figure.values, strict=True)
                if before < step <= cut.step
            ]
            before = cut.step
        if len(matches) >= _MATCHES and all(matches):
            return f"what the script prints as `{figure.name}` ({cuts[0].what.metric:.3g})"
    return ""


def _is_printed_as(given: float, value: float, tolerance: float) -> bool:
    """Whether a number is another one that was rounded, and may have been a percentage."""
    decimals = len(repr(value).partition(".")[2])
    most = min(0.51 * 10.0**-decimals, tolerance * abs(value))
    return any(abs(each - value) <= most for each in (given, given / 100))


def _named(facts: Facts, cut: Event[RateCut], tolerance: float) -> str:
    """Return which recorded quantity a metric is that gets worse in the scheduler's direction."""
    metric = cut.what.metric
    if cut.what.mode == "max":
        if _recorded(facts, VAL_LOSS, cut.step, metric, tolerance):
            return f"the validation loss ({metric:.3g})"
        if _recorded(facts, LOSS, cut.step, metric, tolerance):
            return f"the training loss ({metric:.3g})"
    elif any(_recorded(facts, VAL_ACCURACY, cut.step, metric / per, tolerance) for per in (1, 100)):
        return f"the validation accuracy ({metric:.3g})"
    return ""


def _recorded(facts: Facts, signal: Signal, step: int, metric: float, tolerance: float) -> bool:
    """Whether a signal had this value at its last reading before a step, or as its recent mean."""
    if signal not in facts.run:
        return False
    return any(
        abs(value - metric) <= tolerance * abs(metric)
        for series in facts.run[signal].values()
        for value in _candidates(facts, series, step)
    )


def _candidates(facts: Facts, series: Series, step: int) -> list[float]:
    values = series.values[series.steps <= step]
    if not len(values):
        return []
    epoch = values[-(facts.epoch_steps or 1) :]
    return [float(values[-1]), float(np.mean(epoch))]
