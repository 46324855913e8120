"""A softmax over a single unit always returns 1."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_MAX, OUTPUT_MIN, OUTPUT_UNITS

_OVER_CLASSES = ("cross_entropy", "nll_loss")


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_UNITS,),
)
def single_class_softmax(
    facts: Facts, *, min_steps: Annotated[int, "sampled steps needed"] = 3
) -> Iterator[Verdict]:
    """A softmax over a single unit always returns 1.

    ## What it does
    Reports a cross-entropy with a single class, and any other loss whose input is exactly 1 for
    every sample on all sampled steps. The latter is certain if it holds from the first step on: a
    sigmoid may also saturate at 1 later.

    ## Why it matters
    The softmax of a single number is always 1. The output is constant, its gradient is exactly
    zero, and the model learns nothing.

    ## Example
    ```python
    model = nn.Sequential(nn.Linear(64, 1), nn.Softmax(1)); criterion = nn.BCELoss()   # bad
    model = nn.Linear(64, 1); criterion = nn.BCEWithLogitsLoss()                       # good
    ```

    ## What to do
    For two classes use two units with cross-entropy, or one unit with `nn.BCEWithLogitsLoss` and no
    softmax.

    ## When it is wrong
    A task that really has one class, such as the first stage of a growing classifier.

    ## How to confirm
    - Print the output for a few samples: it is 1 for all of them.
    """
    for function, units in facts.run[OUTPUT_UNITS].items():
        if not len(units):
            continue
        span = (units.first, units.last)
        over_classes = function in _OVER_CLASSES
        if over_classes and float(units.values.max()) == 1:
            says = f"1 on all {len(units)} sampled steps"
            evidence = Evidence(OUTPUT_UNITS, span, says, function)
            summary = f"{function} chooses from a single class on {len(units)} sampled steps: its"
            summary += " loss is always 0"
        elif not over_classes and _always_one(facts, function):
            evidence = Evidence(OUTPUT_MIN, span, "smallest and largest are exactly 1", function)
            summary = f"{function} receives exactly 1 for every sample of {len(units)} sampled"
            summary += " steps: a softmax over one unit"
        else:
            yield single_class_softmax.clear(_given(facts, function, float(units.values[-1])))
            continue
        if len(units) < min_steps:
            yield single_class_softmax.not_examined(f"{len(units)} of the {min_steps} steps needed")
            continue
        certain = over_classes or units.first == 0
        yield single_class_softmax.finding(
            summary,
            confidence=Confidence.CERTAIN if certain else Confidence.LIKELY,
            onset=units.first,
            evidence=(evidence,),
            fix="use two units with cross-entropy, or one with `BCEWithLogitsLoss` and no softmax",
        )


def _always_one(facts: Facts, function: str) -> bool:
    """Return whether all outputs of all sampled steps are exactly 1."""
    extremes = [
        facts.run[signal].get(function) if signal in facts.run else None
        for signal in (OUTPUT_MIN, OUTPUT_MAX)
    ]
    return all(
        series is not None and len(series) and bool((series.values == 1).all())
        for series in extremes
    )


def _given(facts: Facts, function: str, units: float) -> str:
    low, high = readings(facts, OUTPUT_MIN, function), readings(facts, OUTPUT_MAX, function)
    values = (
        f" with values from {low.min():.3g} to {high.max():.3g}" if len(low) and len(high) else ""
    )
    return f"{function} receives {units:.0f} unit{'s' * (units != 1)}{values}"
