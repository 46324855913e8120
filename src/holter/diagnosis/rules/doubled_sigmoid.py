"""A loss on logits is given probabilities, and applies a second sigmoid."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_MAX, OUTPUT_MIN, OUTPUT_SIZE, TARGET_LARGEST_CLASS_FRACTION

_ON_LOGITS = ("binary_cross_entropy_with_logits", "multilabel_soft_margin_loss")
_ONE_KIND = 0.999  # share of one label: there is nothing to tell apart
_SURE = 50  # sampled steps after which chance is out of the question
_WIDE = 0.5  # between the smallest and the largest output: a model that has begun to answer
_PRESSED = 0.02  # nearer to 0 or 1 than that, and never beyond
_MOVED = 0.1  # between the smallest and the largest output of a model that answers at all
_HALF = (0.35, 0.65)  # where a sigmoid begins; logits begin about 0


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_MIN, OUTPUT_MAX),
)
def doubled_sigmoid(facts: Facts, *, min_steps: int = 20) -> Iterator[Verdict]:
    """A loss on logits is given probabilities, and applies a second sigmoid.

    ## What it does
    Looks at what a loss on logits, such as `F.binary_cross_entropy_with_logits`, is given. It
    speaks where no output of at least `min_steps` sampled steps was under 0 or over 1, labels of
    both kinds were seen, and outputs span more than half of that range and press on its bounds:
    logits would have passed them. It is a hint where outputs are not that far yet, but began near a
    half, as a sigmoid does, and stayed between 0 and 1 for 50 steps.

    ## Why it matters
    The loss applies a sigmoid of its own. Of a number between 0 and 1 it makes one between 0.5 and
    0.73: the negative class cannot be told at all, and the loss of balanced labels cannot fall
    under 0.50.

    ## What to do
    Take the sigmoid out of the model, or use `F.binary_cross_entropy` (`nn.BCELoss`) with it.

    ## When it is wrong
    A model whose logits began near a half by chance, or by a bias for the frequent class, and that
    hardly learns; then it is a hint. Soft labels that are all between 0.5 and 0.73 have logits
    between 0 and 1.

    ## How to confirm
    - Print the smallest and the largest output over an epoch: a sigmoid never leaves 0 to 1.
    """
    for owner in facts.run[OUTPUT_MIN]:
        low, high = readings(facts, OUTPUT_MIN, owner), readings(facts, OUTPUT_MAX, owner)
        if owner not in _ON_LOGITS or not len(low) or not len(high):
            continue
        least, most, steps = float(low.min()), float(high.max()), len(low)
        said = f"{owner} is given {least:.3g} to {most:.3g}"
        if least < 0 or most > 1 or most - least < _MOVED:
            yield doubled_sigmoid.clear(f"{said} on {steps} sampled steps")
        elif (last(facts, TARGET_LARGEST_CLASS_FRACTION, owner) or 0) > _ONE_KIND:
            yield doubled_sigmoid.not_examined(f"{said}; all labels are the same")
        elif steps < min_steps:
            yield doubled_sigmoid.not_examined(f"{steps} of the {min_steps} steps needed")
        else:
            pressed = min(least, 1 - most) < _PRESSED and most - least > _WIDE
            if not pressed and (steps < _SURE or not _began_half(facts, owner)):
                yield doubled_sigmoid.clear(f"{said} on {steps} sampled steps, far from both ends")
                continue
            confidence = Confidence.CERTAIN if steps >= _SURE else Confidence.LIKELY
            series = facts.run[OUTPUT_MIN][owner]
            span = (series.first, series.last)
            yield doubled_sigmoid.finding(
                f"{said} on all {steps} sampled steps: these are probabilities, to which it"
                " applies a second sigmoid",
                confidence=confidence if pressed else Confidence.HINT,
                onset=series.first,
                evidence=(
                    Evidence(OUTPUT_MIN, span, f"never under {least:.3g}", owner),
                    Evidence(OUTPUT_MAX, span, f"never over {most:.3g}", owner),
                ),
                fix="take the sigmoid out of the model, or use binary_cross_entropy (BCELoss)",
            )


def _began_half(facts: Facts, owner: str) -> bool:
    """Whether the first outputs were about a half."""
    first = readings(facts, OUTPUT_SIZE, owner)[:1]
    return bool(len(first)) and _HALF[0] < first[0] < _HALF[1]
