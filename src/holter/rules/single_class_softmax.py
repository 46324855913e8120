"""A softmax over a single unit always answers 1."""

from collections.abc import Iterator

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import readings
from holter.run import Run
from holter.signals import OUTPUT_MAX, OUTPUT_MIN, OUTPUT_UNITS

_OVER_CLASSES = ("cross_entropy", "nll_loss")


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_UNITS,),
    explains=(
        "all-zero-gradients",
        "motionless-weights",
        "unreached-parameters",
        "dead-gradients",
        "constant-validation",
        "validation-mismatch",
        "tiny-updates",
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
    ),
)
def single_class_softmax(run: Run, *, min_steps: int = 3) -> Iterator[Verdict]:
    """A softmax over a single unit always answers 1.

    ## What it does
    Looks at what loss functions are given. It speaks where a cross-entropy over classes gets a
    single class, or where a binary cross-entropy gets exactly 1 for every sample, on all of at
    least `min_steps` sampled steps.

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
    for owner, units in run[OUTPUT_UNITS].items():
        if not len(units):
            continue
        span = (units.first, units.last)
        if owner in _OVER_CLASSES and float(units.values.max()) == 1:
            evidence = Evidence(OUTPUT_UNITS, span, f"1 on all {len(units)} sampled steps", owner)
            said = f"{owner} chooses among a single class: its loss is always 0"
        elif owner == "binary_cross_entropy" and _constant_one(run, owner):
            said = f"{owner} is given exactly 1 for every sample: a softmax over one unit"
            evidence = Evidence(OUTPUT_MIN, span, "1 exactly, the smallest and the largest", owner)
        else:
            yield single_class_softmax.clear(f"{owner} is given {units.values[-1]:.0f} units")
            continue
        if len(units) < min_steps:
            yield single_class_softmax.not_examined(f"{len(units)} of the {min_steps} steps needed")
            continue
        yield single_class_softmax.finding(
            said,
            confidence=Confidence.CERTAIN,
            onset=units.first,
            evidence=(evidence,),
            fix="use two units with cross-entropy, or one with BCEWithLogitsLoss and no softmax",
        )


def _constant_one(run: Run, owner: str) -> bool:
    low, high = readings(run, OUTPUT_MIN, owner), readings(run, OUTPUT_MAX, owner)
    return bool(len(low) and len(high) and low.min() == 1 == high.max())
