"""A few samples cannot be learned by heart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from holter.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._changes import change_of
from holter.rules._fitting import (
    ALIKE,
    AS_IT_IS,
    FAR,
    REACHED,
    Fit,
    Trial,
    floor,
    one_answer,
    trials,
    value,
)
from holter.run import Run
from holter.signals import (
    OVERFIT_CONSTANT,
    OVERFIT_EXCHANGED,
    OVERFIT_FLOOR,
    OVERFIT_HELD,
    OVERFIT_LOSS,
    OVERFIT_MOVED,
    OVERFIT_NOISE,
    OVERFIT_QUIET,
    OVERFIT_RATE,
    OVERFIT_REACHED,
    OVERFIT_SAMPLES,
    OVERFIT_SPREAD,
    OVERFIT_TARGETS,
    OVERFIT_TRAINABLE,
    Signal,
)

_BEYOND = 1.5  # share of the way: so far under a floor, it is none
_DROWNED = 0.1  # of the loss of one answer for all: noise leaves less than this to learn
_FEWER = "2 samples"
_CONTROLS = (_FEWER, "labels exchanged")  # what they show is no cause
_AMPLE = 10  # trainable values for each target
_ON_PARAMETERS = (OVERFIT_TRAINABLE, OVERFIT_HELD, OVERFIT_REACHED, OVERFIT_MOVED)
_ENOUGH = 50  # steps that a trial needs to be judged
_STUCK = 0.1  # share of the way of a model that gives one answer for all


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OVERFIT_LOSS,),
    explains=(
        "flat-loss",
        "loss-plateau",
        "underfitting",
        "loss-at-constant-predictor",
        "constant-validation",
    ),
)
def unfittable_batch(run: Run, *, partly: float = 0.5, far: float = FAR) -> Iterator[Verdict]:
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
    found = trials(run)
    plain = [each for each in found if each.name == AS_IT_IS]
    if not plain:
        yield unfittable_batch.not_examined("no trial without a change in this run")
        return
    fitted = _Fitted(run, plain[0], tuple(each for each in found if each.name != AS_IT_IS))
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


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The trial as it is, and those with a change."""

    run: Run
    plain: Trial
    others: tuple[Trial, ...]

    def value(self, signal: Signal) -> float | None:
        return value(self.run, signal, AS_IT_IS)

    @property
    def fit(self) -> Fit:
        return self.plain.fit

    @property
    def samples(self) -> str:
        count = self.value(OVERFIT_SAMPLES) or 0
        return f"{count:.0f} samples" if count > 1 else "a batch"

    @property
    def share(self) -> float:
        """How much of the way it came; with dropout off, if that is more."""
        quiet = self.value(OVERFIT_QUIET)
        if quiet is None or not np.isfinite(quiet):
            return self.fit.share
        return max(self.fit.share, self.plain.aim.share(quiet))

    @property
    def alike(self) -> bool:
        """Whether all samples get the same answer in the end."""
        spread = self.value(OVERFIT_SPREAD)
        return spread is not None and spread <= ALIKE

    @property
    def is_small(self) -> bool:
        """Whether there is little to learn with: it may rest anywhere, and fit by chance."""
        trainable, targets = self.value(OVERFIT_TRAINABLE), self.value(OVERFIT_TARGETS)
        return trainable is not None and targets is not None and trainable < _AMPLE * targets

    @property
    def exact(self) -> bool:
        return self.value(OVERFIT_FLOOR) is not None

    @property
    def about_floor(self) -> str:
        """What the floor was computed from, or why it is not known."""
        for event in self.run.events:
            if event.kind == "overfit floor" and event.data.get("trial") == AS_IT_IS:
                return str(event.data.get("because") or event.data.get("unknown") or "")
        return ""

    @property
    def way(self) -> str:
        """How far it came, and to which floor that would go."""
        least = floor(self.run, AS_IT_IS)
        if least is None:
            return f"{_percent(self.share)} of the first loss is gone"
        kind = "floor" if self.exact else "least of free predictions,"
        about = f" ({self.about_floor})" if self.exact and self.about_floor else ""
        shown = least if abs(least) > 1e-4 * abs(self.plain.aim.reference) else 0.0
        return f"{_percent(self.share)} of the way to the {kind} {shown:.4g}{about}"

    @property
    def begins(self) -> str:
        """Where that way begins."""
        least, constant = floor(self.run, AS_IT_IS), self.value(OVERFIT_CONSTANT)
        if least is None or constant is None or one_answer(constant, least):
            return ""
        return f", from one answer for all samples at {constant:.4g}"

    def success(self) -> str:
        """By what it is known that the samples are learned."""
        exchanged = self.value(OVERFIT_EXCHANGED)
        # Where labels are given to the model they are exchanged too, and nothing is told.
        tells = exchanged is not None and self.plain.aim.share(exchanged) < REACHED
        after = f"; {exchanged:.4g} with inputs exchanged" if tells else ""
        quiet = "" if self.fit.fits else f", {self.value(OVERFIT_QUIET):.4g} with dropout off"
        return f"{self.samples} learned by heart: {_went(self.fit)}{quiet}, {self.way}{after}"

    def cannot_tell(self) -> str | None:
        """Why there is nothing to judge by."""
        fit, aim = self.fit, self.plain.aim
        least, constant = floor(self.run, AS_IT_IS), self.value(OVERFIT_CONSTANT)
        if not np.isfinite(fit.start):
            return "the first loss is not finite"
        if min(fit.start, fit.best) < 0 and (least is None or not (self.exact or fit.fits)):
            return f"the loss falls below 0 and has no floor that is known: {self.about_floor}"
        if least is None and self.value(OVERFIT_NOISE):
            return f"the loss draws random numbers and has no floor known: {self.about_floor}"
        if fit.share > _BEYOND:
            return f"the loss falls to {fit.best:.4g}, far under the floor {least or 0:.4g}"
        if constant is None or least is None:
            return None
        if one_answer(constant, least):
            same = "all samples have the same target: one answer fits them all"
            return same if fit.fits and self.exact else None
        if aim.share(fit.start) >= REACHED:
            return f"{self.samples} are known by heart before the first step: {fit.start:.4g}"
        if self.value(OVERFIT_NOISE) and constant - least < _DROWNED * abs(constant):
            return f"noise in the targets leaves nothing to learn: {constant:.4g} to {least:.4g}"
        if self.value(OVERFIT_RATE) == 0:
            return "the learning rate is 0"
        return None

    def cannot_move(self) -> tuple[str, str] | None:
        """Why no parameter can move whatever is done, and what to do about it."""
        trainable, held = self.value(OVERFIT_TRAINABLE), self.value(OVERFIT_HELD)
        if self.value(OVERFIT_MOVED) != 0 or trainable is None:
            return None
        if trainable == 0:
            return "no parameter requires a gradient", "unfreeze what is to be trained"
        if held == 0:
            return (
                f"the optimizer holds none of the {trainable:,.0f} trainable values of the model",
                "make the optimizer when the model is complete, of `model.parameters()`",
            )
        if self.value(OVERFIT_REACHED) == 0 and self.fitting is None:  # else it may be dead units
            return (
                f"no gradient reaches any of the {trainable:,.0f} trainable values",
                "look for `detach()`, `no_grad`, `.item()` or `.data` between model and loss",
            )
        return None

    def is_under_way(self, far: float) -> str | None:
        """Why it is too early to say that the samples do not fit."""
        fit = self.fit
        steps = "repeat it with more `steps` or `seconds`"
        if fit.falls and fit.ahead <= far and not (self.alike and self.fitting):
            return f"the loss still falls: {_went(fit)}, {self.way}; {steps}"
        if fit.steps < _ENOUGH and not fit.lost:
            return f"{fit.steps} steps in the time given are too few: {steps}"
        return None

    @property
    def fitting(self) -> Trial | None:
        """The first trial with a change in which the same samples fit."""
        return next((e for e in self.others if e.fit.fits and e.name not in _CONTROLS), None)

    @property
    def out_of_time(self) -> bool:
        return any(event.kind == "out of time" for event in self.run.events)


def _by_change(fitted: _Fitted, partly: float, far: float) -> Verdict:
    """The first change that made the samples fit names the cause."""
    trial = fitted.fitting
    if trial is None:
        return _unexplained(fitted, partly)
    change = change_of(fitted.run, fitted.plain, trial)
    if change.hurries and fitted.fit.ahead <= far:  # a plateau may be longer than the trial
        return unfittable_batch.not_examined(
            f"the loss still falls, but slowly: {_went(fitted.fit)}, {fitted.way}; with"
            f" {trial.name} {_went(trial.fit)}"
        )
    if change.lucky:
        if fitted.is_small:
            return _too_small(fitted)
        if fitted.share >= partly:
            return _unexplained(fitted, partly)
    only = f"{_went(fitted.fit)}, {fitted.way}; with {trial.name} {_went(trial.fit)}"
    if change.harmless or (change.recipe and fitted.share >= partly):
        return unfittable_batch.normal(
            f"{fitted.samples} are not learned by heart, for {change.cause}: {only}",
            (_evidence(fitted.plain), _evidence(trial)),
        )
    sure = change.sure and (fitted.share < _STUCK or not change.lucky)
    confidence = Confidence.LIKELY if sure else Confidence.HINT
    return _finding(fitted, change.cause, change.fix, confidence, trial)


def _unexplained(fitted: _Fitted, partly: float) -> Verdict:
    """No change made them fit: what is known all the same."""
    fit = fitted.fit
    count = sum(each.name not in _CONTROLS for each in fitted.others)
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
            f"the time was over before a change made it fit: {_went(fit)}; give it more `seconds`"
        )
    two = any(each.fit.fits and each.name == _FEWER for each in fitted.others)
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


def _too_small(fitted: _Fitted) -> Verdict:
    return unfittable_batch.normal(
        f"{fitted.samples} are not learned by heart, {fitted.way}:"
        f" {fitted.value(OVERFIT_TRAINABLE):,.0f} trainable values are few for"
        f" {fitted.value(OVERFIT_TARGETS):,.0f} targets",
        (_evidence(fitted.plain),),
    )


def _finding(
    fitted: _Fitted, cause: str, fix: str, confidence: Confidence, *beside: Trial
) -> Finding:
    instead = "".join(f"; with {each.name} {_went(each.fit)}" for each in beside)
    return unfittable_batch.finding(
        f"{fitted.samples} cannot be learned by heart: {cause} ({_went(fitted.fit)}{instead})",
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


def _more(fitted: _Fitted, signals: Sequence[Signal]) -> Iterator[Evidence]:
    for signal in signals:
        if (reading := fitted.value(signal)) is not None:
            says = f"{reading:,.0f}" if signal.unit == "values" else f"{reading:.2g}"
            yield Evidence(signal, (0, 0), says, AS_IT_IS)


def _evidence(trial: Trial, way: str = "") -> Evidence:
    share = way or f"{_percent(trial.fit.share)} of the way"
    span = (0, max(trial.fit.steps - 1, 0))
    return Evidence(OVERFIT_LOSS, span, f"{_went(trial.fit)}, {share}", trial.name)


def _percent(share: float) -> str:
    return f"{min(max(share, 0.0), 1.0):.0%}"


def _went(fit: Fit) -> str:
    """`2.303 -> 0.5123 in 80 steps`."""
    end = "" if not fit.lost else ", then not finite"
    return f"{fit.start:.4g} -> {fit.best:.4g} in {fit.steps} steps{end}"
