"""A few samples cannot be learned by heart."""

from collections.abc import Iterator, Sequence

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.fit_causes import cause_of
from holter.diagnosis.facts.fits import AS_IT_IS, FAR, REACHED, FitTrial, trials
from holter.diagnosis.facts.fitted import CONTROLS, FEWER, Fitted, percent, went
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    OVERFIT_HELD,
    OVERFIT_LOSS,
    OVERFIT_MOVED,
    OVERFIT_REACHED,
    OVERFIT_SPREAD,
    OVERFIT_TARGETS,
    OVERFIT_TRAINABLE,
    Signal,
)

_ON_PARAMETERS = (OVERFIT_TRAINABLE, OVERFIT_HELD, OVERFIT_REACHED, OVERFIT_MOVED)
_STUCK = 0.1  # share of the way of a model that gives one answer for all


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OVERFIT_LOSS,),
)
def unfittable_batch(facts: Facts, *, partly: float = 0.5, far: float = FAR) -> Iterator[Verdict]:
    """A few samples cannot be learned by heart.

    ## What it does
    Reads what `holter try overfit-batch` measured: a training on a few samples and nothing else.
    The loss has to go nine tenths of the way from what one answer for all samples would lose to its
    floor, the least that the targets allow: label smoothing, soft and weighted targets, samples
    with the same input and noise in the targets keep it above 0. If it comes to rest before, or
    needs more than `far` steps at its pace, the first change that makes it fit names the cause:
    each was tried alone, from the same weights. Dropout, weight decay, batch norm and learning
    rates are held against a training only if it comes less than `partly` of the way.

    ## Why it matters
    Learning a handful of samples by heart is the least that a model can do. If it cannot, more data
    and more epochs change nothing: a mistake is in the model, the loss, the loop or a setting.

    ## What to do
    Mend what the finding names, and try again. Where no change makes it fit, take the model apart:
    fit one layer, then two.

    ## When it is wrong
    A model that is meant to be too small, or a loss that cannot come near its floor (a bottleneck,
    embeddings of unit length): it is told where parameters are few for the targets, where two
    samples fit, and where the floor was not computed but searched for. Plateaus that are longer
    than the trial. Losses of which the floor is not known, and that fall below 0, are not judged.

    ## How to confirm
    - Repeat it with more steps, or other samples: `holter try overfit-batch --option steps=2000`.
    - Make the change that the finding names in the training itself, and compare 100 steps.
    """
    found = trials(facts.run)
    plain = [each for each in found if each.name == AS_IT_IS]
    if not plain:
        yield unfittable_batch.not_examined("no trial without a change in this run")
        return
    fitted = Fitted(facts.run, plain[0], tuple(each for each in found if each.name != AS_IT_IS))
    if (why := fitted.cannot_tell()) is not None:
        yield unfittable_batch.not_examined(why)
    elif fitted.share >= REACHED:
        yield unfittable_batch.clear(fitted.success())
    elif (stuck := fitted.cannot_move()) is not None:
        yield _finding(fitted, stuck[0], stuck[1], Confidence.CERTAIN)
    elif (why := fitted.is_under_way(far)) is not None:
        yield unfittable_batch.not_examined(why)
    else:
        yield _by_change(fitted, partly, far)


def _by_change(fitted: Fitted, partly: float, far: float) -> Verdict:
    """The first change that made the samples fit names the cause."""
    trial = fitted.fitting
    if trial is None:
        return _unexplained(fitted, partly)
    change = cause_of(fitted.run, fitted.plain, trial)
    if change.hurries and fitted.fit.ahead <= far:  # a plateau may be longer than the trial
        return unfittable_batch.not_examined(
            f"the loss still falls, but slowly: {went(fitted.fit)}, {fitted.way}; with"
            f" {trial.name} {went(trial.fit)}"
        )
    if change.lucky:
        if fitted.is_small:
            return _too_small(fitted)
        if fitted.share >= partly:
            return _unexplained(fitted, partly)
    only = f"{went(fitted.fit)}, {fitted.way}; with {trial.name} {went(trial.fit)}"
    if change.harmless or (change.recipe and fitted.share >= partly):
        return unfittable_batch.normal(
            f"{fitted.samples} are not learned by heart, for {change.cause}: {only}",
            (_evidence(fitted.plain), _evidence(trial)),
        )
    sure = change.sure and (fitted.share < _STUCK or not change.lucky)
    confidence = Confidence.LIKELY if sure else Confidence.HINT
    return _finding(fitted, change.cause, change.fix, confidence, trial)


def _unexplained(fitted: Fitted, partly: float) -> Verdict:
    """No change made them fit: what is known all the same."""
    fit = fitted.fit
    count = sum(each.name not in CONTROLS for each in fitted.others)
    tried = f"none of {count} changes makes it fit" if count > 1 else "no change makes it fit"
    if fit.lost:
        lost = [each for each in fitted.others if each.fit.lost]
        return _finding(
            fitted,
            f"the loss is not finite after {fit.steps} steps, nor in {len(lost)} of"
            f" {len(fitted.others)} trials with a change",
            "find the operation that gives NaN first: a logarithm, a root or a division",
            Confidence.LIKELY if lost else Confidence.HINT,
            *lost[:1],
        )
    if fitted.is_small:
        return _too_small(fitted)
    if fitted.alike and fitted.share < _STUCK:
        return _finding(
            fitted,
            "all samples get the same answer whatever their inputs are",
            "follow one input through the model to where it no longer makes a difference",
            Confidence.LIKELY,
        )
    if fitted.out_of_time:
        return unfittable_batch.not_examined(
            f"the time was over before a change made it fit: {went(fit)}; give it more `seconds`"
        )
    two = any(each.fit.fits and each.name == FEWER for each in fitted.others)
    if not fitted.exact or fitted.share >= partly or two:
        fewer = "; two samples fit" if two else ""
        return unfittable_batch.not_examined(
            f"whether the loss can get further than {fit.best:.4g} is not known: {fitted.way},"
            f" {tried}{fewer}"
        )
    return _finding(
        fitted,
        tried,
        "take the model apart: fit the last layer alone, then more of it",
        Confidence.HINT,
    )


def _too_small(fitted: Fitted) -> Verdict:
    return unfittable_batch.normal(
        f"{fitted.samples} are not learned by heart, {fitted.way}:"
        f" {fitted.value(OVERFIT_TRAINABLE):,.0f} trainable values are few for"
        f" {fitted.value(OVERFIT_TARGETS):,.0f} targets",
        (_evidence(fitted.plain),),
    )


def _finding(
    fitted: Fitted, cause: str, fix: str, confidence: Confidence, *beside: FitTrial
) -> Finding:
    instead = "".join(f"; with {each.name} {went(each.fit)}" for each in beside)
    return unfittable_batch.finding(
        f"{fitted.samples} cannot be learned by heart: {cause} ({went(fitted.fit)}{instead})",
        confidence=confidence,
        severity=Severity.WARNING if confidence is Confidence.HINT else None,
        onset=0,
        evidence=(
            _evidence(fitted.plain, fitted.way + fitted.begins),
            *map(_evidence, beside),
            *_more(fitted, _ON_PARAMETERS if fitted.value(OVERFIT_MOVED) == 0 else ()),
            *_more(fitted, (OVERFIT_SPREAD,) if fitted.alike else ()),
        ),
        fix=fix,
    )


def _more(fitted: Fitted, signals: Sequence[Signal]) -> Iterator[Evidence]:
    for signal in signals:
        if (reading := fitted.value(signal)) is not None:
            says = f"{reading:,.0f}" if signal.unit == "values" else f"{reading:.2g}"
            yield Evidence(signal, (0, 0), says, AS_IT_IS)


def _evidence(trial: FitTrial, way: str = "") -> Evidence:
    share = way or f"{percent(trial.fit.share)} of the way"
    span = (0, max(trial.fit.steps - 1, 0))
    return Evidence(OVERFIT_LOSS, span, f"{went(trial.fit)}, {share}", trial.name)
