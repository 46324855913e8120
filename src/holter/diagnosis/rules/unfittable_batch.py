"""The model cannot memorise a few samples."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.fit_causes import cause_of
from holter.diagnosis.facts.fits import AS_IT_IS, FAR, REACHED, FitTrial
from holter.diagnosis.facts.fits import trials as fit_trials
from holter.diagnosis.facts.fitted import CONTROLS, FEWER, Fitted, percent, went
from holter.diagnosis.rule import exception, rule
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
from holter.record.trials import TrialKind

_ON_PARAMETERS = (OVERFIT_TRAINABLE, OVERFIT_HELD, OVERFIT_REACHED, OVERFIT_MOVED)


@exception
def few_parameters(fitted: Fitted, trial: FitTrial | None) -> str | None:
    """The model has too few trainable values per target to memorise the targets."""
    if fitted.fit.lost or not fitted.is_small:
        return None
    if trial is not None and not cause_of(fitted.run, fitted.plain, trial).lucky:
        return None
    return (
        f"{fitted.samples} not memorised, {fitted.way}: {fitted.value(OVERFIT_TRAINABLE):,.0f}"
        f" trainable values for {fitted.value(OVERFIT_TARGETS):,.0f} targets"
    )


@exception
def random_step(fitted: Fitted, trial: FitTrial | None) -> str | None:
    """Random noise in the step (augmentation, sampling) keeps the loss high by design."""
    return _fits_with(fitted, trial, TrialKind.SAME_RANDOM_NUMBERS)


@exception
def frozen_layers(fitted: Fitted, trial: FitTrial | None) -> str | None:
    """A part of the model is frozen, and the rest is too small to memorise samples."""
    return _fits_with(fitted, trial, TrialKind.NOTHING_FROZEN)


def _fits_with(fitted: Fitted, trial: FitTrial | None, kind: TrialKind) -> str | None:
    if trial is None or trial.change.kind is not kind:
        return None
    return f"{fitted.samples} not memorised: {_compared(fitted, trial)}"


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OVERFIT_LOSS,),
    exceptions=(few_parameters, random_step, frozen_layers),
)
def unfittable_batch(
    facts: Facts,
    *,
    min_learned: Annotated[
        float, "share of the way up to which a deliberate setting is tolerated"
    ] = 0.5,
    max_stuck: Annotated[float, "share of the way of a model that learns nothing"] = 0.1,
    far: Annotated[float, "steps still needed at the last pace that are too many"] = FAR,
) -> Iterator[Verdict]:
    """The model cannot memorise a few samples.

    ## What it does
    Uses `holter try overfit-batch`, a training on only a few samples, and reports if its loss
    stalls before 90 % of the way from the best constant prediction to the lowest possible loss. If
    that fails, single changes are tried from the same weights; the first one with which the model
    fits names the cause.

    ## Why it matters
    Any working model can memorise a handful of samples. If it cannot, more data and more epochs do
    not help: the error is in the model, the loss, the loop or a setting.

    ## Example
    ```python
    nn.Dropout(0.95)  # bad
    nn.Dropout(0.05)  # good
    ```

    ## What to do
    Fix the named cause and try again. If no change helps, build the model up step by step: fit one
    layer, then two.

    ## When it is wrong
    A loss that cannot reach its minimum (a bottleneck, unit-length embeddings), or a plateau longer
    than the trial. Losses below 0 whose floor is unknown are not judged.

    ## How to confirm
    - Repeat it with more steps or other samples: `holter try overfit-batch --option steps=2000`.
    - Make the change that the finding names in the training itself, and compare 100 steps.
    """
    trials = fit_trials(facts.run)
    plain = [trial for trial in trials if trial.name == AS_IT_IS]
    if not plain:
        yield unfittable_batch.not_examined("no trial without a change in this run")
        return
    others = tuple(trial for trial in trials if trial.name != AS_IT_IS)
    fitted = Fitted(facts.run, plain[0], others)
    if (why := fitted.cannot_tell()) is not None:
        yield unfittable_batch.not_examined(why)
    elif fitted.share >= REACHED:
        yield unfittable_batch.clear(fitted.success())
    elif (stuck := fitted.cannot_move()) is not None:
        yield _finding(fitted, stuck[0], stuck[1], Confidence.CERTAIN)
    elif (why := fitted.is_under_way(far)) is not None:
        yield unfittable_batch.not_examined(why)
    elif (excuse := unfittable_batch.excused(fitted, fitted.fitting)) is not None:
        yield excuse
    else:
        yield _by_change(fitted, min_learned, max_stuck, far)


def _by_change(fitted: Fitted, min_learned: float, max_stuck: float, far: float) -> Verdict:
    """Judge by the first change that made the samples fit."""
    trial = fitted.fitting
    if trial is None:
        return _unexplained(fitted, min_learned, max_stuck)
    change = cause_of(fitted.run, fitted.plain, trial)
    if change.hurries and fitted.fit.ahead <= far:  # a plateau may be longer than the trial
        return unfittable_batch.not_examined(
            f"the loss still falls, but slowly: {_compared(fitted, trial)}"
        )
    if change.lucky and fitted.share >= min_learned:
        return _unexplained(fitted, min_learned, max_stuck)
    if change.recipe and fitted.share >= min_learned:
        return unfittable_batch.harmless(
            f"{fitted.samples} mostly memorised, although {change.cause}:"
            f" {_compared(fitted, trial)}",
            (_evidence(fitted.plain), _evidence(trial)),
        )
    sure = change.sure and (fitted.share < max_stuck or not change.lucky)
    confidence = Confidence.LIKELY if sure else Confidence.HINT
    return _finding(fitted, change.cause, change.fix, confidence, trial)


def _unexplained(fitted: Fitted, min_learned: float, max_stuck: float) -> Verdict:
    """Judge samples that no change made fit."""
    fit = fitted.fit
    count = sum(trial.name not in CONTROLS for trial in fitted.others)
    tried = f"none of {count} changes makes it fit" if count > 1 else "no change makes it fit"
    if fit.lost:
        lost = [trial for trial in fitted.others if trial.fit.lost]
        return _finding(
            fitted,
            f"the loss is not finite after {fit.steps} steps, nor in {len(lost)} of"
            f" {len(fitted.others)} trials with a change",
            "find the operation that produces NaN first: a logarithm, a root or a division",
            Confidence.LIKELY if lost else Confidence.HINT,
            *lost[:1],
        )
    if fitted.alike and fitted.share < max_stuck:
        return _finding(
            fitted,
            "all samples get the same prediction regardless of their inputs",
            "follow two inputs through the model to the layer where they become equal",
            Confidence.LIKELY,
        )
    if fitted.out_of_time:
        return unfittable_batch.not_examined(
            f"time ran out before a change made it fit: {went(fit)}; allow more `seconds`"
        )
    two = any(trial.fit.fits and trial.name == FEWER for trial in fitted.others)
    if not fitted.exact or fitted.share >= min_learned or two:
        fewer = "; two samples fit" if two else ""
        return unfittable_batch.not_examined(
            f"unknown whether the loss can fall below {fit.best:.3g}: {fitted.way}, {tried}{fewer}"
        )
    return _finding(
        fitted,
        tried,
        "build the model up step by step: fit the last layer alone, then add layers",
        Confidence.HINT,
    )


def _compared(fitted: Fitted, trial: FitTrial) -> str:
    return f"{went(fitted.fit)}, {fitted.way}; with {trial.name} {went(trial.fit)}"


def _finding(
    fitted: Fitted, cause: str, fix: str, confidence: Confidence, *beside: FitTrial
) -> Finding:
    instead = "".join(f"; with {trial.name} {went(trial.fit)}" for trial in beside)
    return unfittable_batch.finding(
        f"the model cannot memorise {fitted.samples}: {cause} ({went(fitted.fit)}{instead})",
        confidence=confidence,
        severity=Severity.WARNING if confidence is Confidence.HINT else None,
        onset=0,
        evidence=(
            _evidence(fitted.plain, fitted.way),
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
