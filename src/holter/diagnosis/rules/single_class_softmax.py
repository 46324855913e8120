"""A softmax over a single unit always answers 1."""

from collections.abc import Iterator

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
def single_class_softmax(facts: Facts, *, min_steps: int = 3) -> Iterator[Verdict]:
    """A softmax over a single unit always answers 1.

    ## What it does
    Looks at what loss functions are given. It speaks where a cross-entropy over classes gets a
    single class, or where another loss gets exactly 1 for every sample, on all of at least
    `min_steps` sampled steps. That is likely, and certain where it is so from the first step: a
    sigmoid may be driven to 1 later, too.

    ## Why it matters
    The softmax of one number is 1, whatever the number. The output is constant, its gradient is
    exactly zero, and nothing is learned.

    ## What to do
    For two classes use two units with cross-entropy, or one unit with `nn.BCEWithLogitsLoss` and no
    softmax.

    ## When it is wrong
    A task that really has one class, as a stage of a growing classifier.

    ## How to confirm
    - Print the output for a few samples: it is 1 for all of them.
    """
    for owner, units in facts.run[OUTPUT_UNITS].items():
        if not len(units):
            continue
        span = (units.first, units.last)
        over_classes = owner in _OVER_CLASSES
        if over_classes and float(units.values.max()) == 1:
            evidence = Evidence(OUTPUT_UNITS, span, f"1 on all {len(units)} sampled steps", owner)
            said = f"{owner} chooses among a single class: its loss is always 0"
        elif not over_classes and _constant_one(facts, owner):
            said = f"{owner} is given exactly 1 for every sample: a softmax over one unit"
            evidence = Evidence(OUTPUT_MIN, span, "1 exactly, the smallest and the largest", owner)
        else:
            yield single_class_softmax.clear(_given(facts, owner, float(units.values[-1])))
            continue
        if len(units) < min_steps:
            yield single_class_softmax.not_examined(f"{len(units)} of the {min_steps} steps needed")
            continue
        sure = over_classes or units.first == 0
        yield single_class_softmax.finding(
            said,
            confidence=Confidence.CERTAIN if sure else Confidence.LIKELY,
            onset=units.first,
            evidence=(evidence,),
            fix="use two units with cross-entropy, or one with BCEWithLogitsLoss and no softmax",
        )


def _constant_one(facts: Facts, owner: str) -> bool:
    """Whether all outputs of all sampled steps are 1 exactly."""
    series = [
        facts.run[signal].get(owner) if signal in facts.run else None
        for signal in (OUTPUT_MIN, OUTPUT_MAX)
    ]
    return all(each is not None and len(each) and bool((each.values == 1).all()) for each in series)


def _given(facts: Facts, owner: str, units: float) -> str:
    low, high = readings(facts, OUTPUT_MIN, owner), readings(facts, OUTPUT_MAX, owner)
    values = f" with values from {low.min():.3g} to {high.max():.3g}" if len(low) else ""
    return f"{owner} is given {units:.0f} unit{'s' * (units != 1)}{values}"
