"""Training ended with little learned: too early, or with too small a model."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import Baseline, Learned, learned, readings
from holter.diagnosis.facts.curve import Curve, settled, warmed_up
from holter.diagnosis.facts.robust import midmean, midmean_error, noise
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, OUTPUT_SPREAD, TARGET_ENTROPY, VAL_LOSS

_FALLING = 0.05  # share of the whole fall in the last quarter that is worth a note
_SETTLED = 1 / 3  # share of the steps for which a level loss has been level


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
    preview=True,
)
def underfitting(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed"] = 100,
    short: Annotated[
        float, "share below the best constant prediction that is little for a loss that falls"
    ] = 1 / 3,
    poor: Annotated[float, "the same share for a level loss"] = 0.1,
    late_fall: Annotated[
        float, "share of the whole fall in the last quarter; a straight line gives 0.25"
    ] = 0.15,
    max_gap: Annotated[float, "relative gap to the validation loss of a small model"] = 0.05,
    min_spread: Annotated[
        float, "share of the targets that the spread of predictions could explain"
    ] = 0.02,
) -> Iterator[Verdict]:
    """Training ended with little learned: too early, or with too small a model.

    ## What it does
    Compares loss and accuracy at the end with the best constant prediction. *Too early*: little was
    learned and the loss is still falling about as fast as at the beginning. *Too small*: hardly
    anything was learned, the loss is level, validation gives the same loss, and predictions vary.

    ## Why it matters
    A falling loss needs more steps or a higher learning rate. A plateau with an equally good
    validation loss needs a different model or other inputs: more steps do not help.

    ## Example
    ```python
    for epoch in range(3): train(model, lr=2e-5)    # bad
    for epoch in range(30): train(model, lr=2e-3)   # good
    ```

    ## What to do
    Falling: train longer, or multiply the learning rate by 3. Plateau: use more units or layers,
    less dropout, weight decay and augmentation, or better inputs. If a much larger model stays at
    the same level, the inputs contain no more information.

    ## When it is wrong
    A run that was cut short on purpose. Targets that the inputs hardly determine. Only cross
    entropies and squared errors are examined, because their best constant prediction is known.

    ## How to confirm
    - Continue for as many steps again: if the loss falls by as much again, the run was stopped too
      early.
    - Train a model of twice the width on a tenth of the data: if it fits that, the small one was
      too small.
    """
    curve = facts.curve
    if isinstance(curve, str):
        yield underfitting.not_examined(curve)
        return
    if facts.run.is_experiment:
        yield underfitting.not_examined("only the first steps were tried")
        return
    if len(curve) < min_steps or warmed_up(facts, curve) is None:
        yield underfitting.not_examined(
            f"{len(curve)} of the {min_steps} losses needed"
            if len(curve) < min_steps
            else "the learning rate is still warming up"
        )
        return
    baseline = facts.baseline
    share = _late_share(curve)
    progress = None
    if not isinstance(baseline, str):
        progress = learned(facts, baseline, midmean(curve.part(0.75)))
    too_early = progress is not None and progress.most < short and share >= late_fall
    if share >= _FALLING and not too_early:
        yield underfitting.normal(f"the loss is still falling at the end: {_falls(share)}")
    if isinstance(baseline, str) or progress is None:
        yield underfitting.not_examined(str(baseline))
    elif too_early:
        yield _falling(curve, baseline, progress, share)
    elif share >= _FALLING or progress.most >= poor:
        yield underfitting.clear(str(progress))
    else:
        yield _level(facts, curve, baseline, progress, max_gap=max_gap, min_spread=min_spread)


def _late_share(curve: Curve) -> float:
    """Return the share of the whole fall in the last quarter; 0 where noise may hide it."""
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


def _falling(curve: Curve, baseline: Baseline, progress: Learned, share: float) -> Verdict:
    return underfitting.finding(
        f"training ended while the loss was falling ({_falls(share)}); {progress}",
        confidence=Confidence.HINT,
        onset=int(curve.steps[curve.place(0.75)]),
        evidence=(
            Evidence(LOSS, curve.span, _falls(share), curve.owner),
            Evidence(baseline.signal, curve.span, str(progress), baseline.function),
        ),
        fix="train longer, or multiply the learning rate by 3",
    )


def _level(
    facts: Facts,
    curve: Curve,
    baseline: Baseline,
    progress: Learned,
    *,
    max_gap: float,
    min_spread: float,
) -> Verdict:
    end = settled(curve)
    if end is None or end.share < _SETTLED:
        return underfitting.clear("the loss has not settled yet")
    evaluation = facts.evaluation
    owner = "" if isinstance(evaluation, str) else evaluation.owner
    validation = readings(facts, VAL_LOSS, owner, end.since)
    if not len(validation):
        return underfitting.not_examined("no validation to compare a level loss with")
    held_out = float(midmean(validation[-5:]))
    training = midmean(curve.part(0.75)) / baseline.scale
    if abs(held_out - training) > max_gap * training:
        return underfitting.clear(f"validation loss {held_out:.3g}, training loss {training:.3g}")
    spread = readings(facts, OUTPUT_SPREAD, baseline.function, end.since)
    unit = 1 if baseline.signal is TARGET_ENTROPY else baseline.level
    if not len(spread) or midmean(spread) ** 2 / unit < min_spread:
        return underfitting.clear("predictions hardly vary between samples")
    window = (end.since, curve.span[1])
    return underfitting.finding(
        f"the loss has been level at {training:.3g} since step {end.since}, validation at"
        f" {held_out:.3g}; {progress}",
        confidence=Confidence.HINT,
        onset=end.since,
        evidence=(
            Evidence(baseline.signal, curve.span, str(progress), baseline.function),
            Evidence(LOSS, window, f"level at {training:.3g}", curve.owner),
            Evidence(VAL_LOSS, window, f"{held_out:.3g}", owner),
        ),
        fix="give the model more capacity and less regularisation; if that changes nothing, the"
        " inputs contain no more information",
    )
