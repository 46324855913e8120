"""A loss on logits receives probabilities and applies a second sigmoid."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_MAX, OUTPUT_MIN, OUTPUT_SIZE, TARGET_LARGEST_CLASS_FRACTION

_ON_LOGITS = ("binary_cross_entropy_with_logits", "multilabel_soft_margin_loss")
_ALL = 0.999  # share of one label that is all but rounding


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_MIN, OUTPUT_MAX),
)
def doubled_sigmoid(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 20,
    sure_steps: Annotated[int, "sampled steps after which coincidence is ruled out"] = 50,
    min_range: Annotated[float, "range of the outputs of a model that has begun to learn"] = 0.5,
    margin: Annotated[float, "largest distance of such outputs from 0 or 1"] = 0.02,
    half: Annotated[float, "largest distance of the first outputs from 0.5, for a hint"] = 0.15,
) -> Iterator[Verdict]:
    """A loss on logits receives probabilities and applies a second sigmoid.

    ## What it does
    Checks the input of a loss on logits such as `F.binary_cross_entropy_with_logits`. It reports
    outputs that come close to 0 or 1 and never leave that range, unlike logits. It is a hint if
    outputs are not that far yet, but started near 0.5, like those of a sigmoid.

    ## Why it matters
    The loss applies a sigmoid itself, which maps the range 0 to 1 to 0.5 to 0.73: the model cannot
    predict the negative class, and the loss of balanced labels cannot fall below 0.50.

    ## Example
    ```python
    loss = F.binary_cross_entropy_with_logits(torch.sigmoid(logits), y)   # bad
    loss = F.binary_cross_entropy_with_logits(logits, y)                  # good
    ```

    ## What to do
    Remove the sigmoid from the model, or keep it and use `F.binary_cross_entropy` (`nn.BCELoss`).

    ## When it is wrong
    Logits that started near 0.5, for example by a bias for the frequent class, and barely change;
    this is a hint. Soft labels that are all between 0.5 and 0.73 have logits between 0 and 1.

    ## How to confirm
    - Print the smallest and the largest output over an epoch: a sigmoid never leaves 0 to 1.
    """
    for function in facts.run[OUTPUT_MIN]:
        low, high = readings(facts, OUTPUT_MIN, function), readings(facts, OUTPUT_MAX, function)
        if function not in _ON_LOGITS or not len(low) or not len(high):
            continue
        least, most, steps = float(low.min()), float(high.max()), len(low)
        measured = (
            f"the input of {function} ranges from {least:.3g} to {most:.3g} on {steps} sampled"
            " steps"
        )
        if least < 0 or most > 1:
            yield doubled_sigmoid.clear(measured)
            continue
        if (last(facts, TARGET_LARGEST_CLASS_FRACTION, function) or 0) > _ALL:
            yield doubled_sigmoid.not_examined(f"{measured}; all labels are the same")
            continue
        pressed = min(least, 1 - most) < margin and most - least > min_range
        needed = min_steps if pressed else sure_steps
        if not pressed and not _began_at_half(facts, function, half):
            yield doubled_sigmoid.clear(f"{measured}, far from 0, 0.5 and 1")
            continue
        if steps < needed:
            yield doubled_sigmoid.not_examined(f"{measured}, of {needed} needed")
            continue
        confidence = Confidence.CERTAIN if steps >= sure_steps else Confidence.LIKELY
        series = facts.run[OUTPUT_MIN][function]
        span = (series.first, series.last)
        yield doubled_sigmoid.finding(
            f"{measured}: these are probabilities, and the loss applies a second sigmoid",
            confidence=confidence if pressed else Confidence.HINT,
            onset=series.first,
            evidence=(
                Evidence(OUTPUT_MIN, span, f"never below {least:.3g}", function),
                Evidence(OUTPUT_MAX, span, f"never above {most:.3g}", function),
            ),
            fix="remove the sigmoid from the model, or use `F.binary_cross_entropy`",
        )


def _began_at_half(facts: Facts, function: str, distance: float) -> bool:
    """Return whether the first outputs were about 0.5."""
    first = readings(facts, OUTPUT_SIZE, function)[:1]
    return bool(len(first)) and abs(first[0] - 0.5) < distance
