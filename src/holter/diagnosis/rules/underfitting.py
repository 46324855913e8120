"""Training ended with little learned: too early, or with too small a model."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import Baseline, Learned, learned, readings
from holter.diagnosis.facts.curve import Curve, rate_left, settled, warmed_up
from holter.diagnosis.facts.robust import midmean, midmean_error, noise
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, OUTPUT_SPREAD, TARGET_ENTROPY, VAL_LOSS

_NEAR_LINE = 0.15  # share of the whole fall that lies in the last quarter; 0.25 for a straight line
_FALLING = 0.05  # the same share from which on a note is due
_DECAYED = 0.1  # of its peak: such a learning rate ends the training on purpose
_SAME = 0.05  # by which validation may differ from training
_VARIES = 0.02  # share of the anchor that predictions which vary so much could explain


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
    preview=True,
)
def underfitting(
    facts: Facts, *, min_steps: int = 100, short: float = 1 / 3, poor: float = 0.1
) -> Iterator[Verdict]:
    """Training ended with little learned: too early, or with too small a model.

    ## What it does
    Reads how much of the loss of a constant answer is gone, and of the errors of always answering
    the most frequent class. With at least `min_steps` losses there are two findings, both hints.
    *Too early*: less than `short` of either is gone, the learning rate has not decayed, and the
    loss falls on as if it had just begun: at least 15 % of the whole fall lies between the third
    and the last quarter. *Too small*: less than `poor` is gone, the loss is level, validation gives
    the same loss, and predictions do vary with the inputs. Any other loss that still falls at the
    end is noted as normal.

    ## Why it matters
    Falling is a matter of steps or of the learning rate: more of the same helps. Level, with
    validation as good as training, is a matter of the model or its inputs: more of the same does
    not help.

    ## What to do
    Falling: train longer, or raise the learning rate threefold. Level: give the model more units or
    layers, less dropout, weight decay and augmentation, and better inputs; if a much larger model
    stays at the same level, the inputs do not tell more.

    ## When it is wrong
    A run that is cut short on purpose. Targets that the inputs hardly determine. A constant
    answer is known for cross entropies and squared errors only: other losses are never a finding.

    ## How to confirm
    - Go on for as many steps again: a loss that falls by as much was stopped too early.
    - Train a model of twice the width on a tenth of the data: if it fits that, the small one was
      too small.
    """
    curve = facts.curve
    if isinstance(curve, str):
        yield underfitting.not_examined(curve)
        return
    if facts.run.is_experiment:
        yield underfitting.not_examined("only its first steps were tried")
        return
    if len(curve) < min_steps or warmed_up(facts, curve) is None:
        yield underfitting.not_examined(
            f"{len(curve)} of the {min_steps} losses needed, warm-up over"
        )
        return
    found = facts.baseline
    level = midmean(curve.part(0.75))
    known = None if isinstance(found, str) else learned(facts, found, level)
    left = rate_left(facts, curve)
    share = _late_share(curve)
    is_falling = share >= _FALLING and not (left and left < _DECAYED)
    if is_falling and (known is None or known.most >= short or share < _NEAR_LINE):
        yield underfitting.normal(f"the loss still falls at the end: {_falls(share)}")
    if isinstance(found, str) or known is None:
        yield underfitting.not_examined(str(found))
    elif is_falling and share >= _NEAR_LINE and known.most < short:
        yield _falling(curve, found, known, share)
    elif is_falling or known.most >= poor:
        yield underfitting.clear(str(known))
    else:
        yield _level(facts, curve, found, known, level)


def _late_share(curve: Curve) -> float:
    """Share of the whole fall between the third quarter and the last; 0 where that is not sure."""
    first = midmean(curve.values[: max(len(curve) // 50, 3)])
    third, fourth = curve.part(0.5, 0.75), curve.part(0.75)
    if min(len(third), len(fourth)) < 4:
        return 0.0
    fall = midmean(third) - midmean(fourth)
    error = midmean_error(noise((third, fourth)), len(third), len(fourth))
    whole = first - midmean(fourth)
    return fall / whole if fall > 4 * error and whole > fall else 0.0


def _falls(share: float) -> str:
    return f"{share:.0%} of its whole fall lies between the last two quarters"


def _falling(curve: Curve, found: Baseline, known: Learned, share: float) -> Verdict:
    return underfitting.finding(
        f"training ended while the loss was falling ({_falls(share)}); {known}",
        confidence=Confidence.HINT,
        onset=int(curve.steps[curve.place(0.75)]),
        evidence=(
            Evidence(LOSS, curve.span, _falls(share), curve.owner),
            Evidence(found.signal, curve.span, str(known), found.function),
        ),
        fix="train longer, or raise the learning rate threefold",
    )


def _level(facts: Facts, curve: Curve, found: Baseline, known: Learned, level: float) -> Verdict:
    end = settled(curve)
    if end is None or end.share < 1 / 3:
        return underfitting.clear("the loss has not settled yet")
    validation = readings(facts, VAL_LOSS, found.function, end.since)
    if not len(validation):
        return underfitting.not_examined("no validation to compare a level loss with")
    there = float(midmean(validation[-5:]))
    own = level / found.scale
    if abs(there - own) > _SAME * own:
        return underfitting.clear(f"validation gives {there:.4g}, training {own:.4g}")
    spread = readings(facts, OUTPUT_SPREAD, found.function, end.since)
    unit = 1 if found.signal is TARGET_ENTROPY else found.level
    if not len(spread) or midmean(spread) ** 2 / unit < _VARIES:
        return underfitting.clear("predictions hardly vary: not a matter of capacity")
    return underfitting.finding(
        f"the loss is level at {own:.4g} since step {end.since}, validation at {there:.4g}, with"
        f" little learned: {known}",
        confidence=Confidence.HINT,
        onset=end.since,
        evidence=(
            Evidence(found.signal, curve.span, str(known), found.function),
            Evidence(LOSS, (end.since, curve.span[1]), f"level at {own:.4g}", curve.owner),
            Evidence(VAL_LOSS, (end.since, curve.span[1]), f"{there:.4g}", found.function),
        ),
        fix="give the model more capacity and less regularisation; if that changes nothing, the"
        " inputs do not tell more",
    )
