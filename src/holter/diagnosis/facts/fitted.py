"""The trials of `overfit-batch` together: what was reached, and what follows from it."""

from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts.fits import (
    ALIKE,
    AS_IT_IS,
    REACHED,
    Fit,
    FitTrial,
    floor,
    one_answer,
    value,
)
from holter.record import Run
from holter.record.events import OutOfTime, OverfitFloor
from holter.record.signals import (
    OVERFIT_CONSTANT,
    OVERFIT_EXCHANGED,
    OVERFIT_FLOOR,
    OVERFIT_HELD,
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
from holter.record.trials import TrialKind, TrialName

FEWER = str(TrialName(TrialKind.TWO_SAMPLES))
CONTROLS = (FEWER, str(TrialName(TrialKind.ROLLED_LABELS)))  # comparisons: they name no cause
_BEYOND = 1.5  # share of the way beyond which the floor must be wrong
_DROWNED = 0.1  # of the best constant loss: noise leaves less than this to learn
_ENOUGH = 50  # steps below which a trial is not judged
_AMPLE = 10  # trainable values per target that are enough to memorise it


@dataclass(frozen=True, slots=True)
class Fitted:
    """The unchanged trial, and those with a change."""

    run: Run
    plain: FitTrial
    others: tuple[FitTrial, ...]

    def value(self, signal: Signal) -> float | None:
        """Return the reading of a signal in the unchanged trial, or None."""
        return value(self.run, signal, AS_IT_IS)

    @property
    def fit(self) -> Fit:
        """How the unchanged trial went."""
        return self.plain.fit

    @property
    def samples(self) -> str:
        """The samples in words."""
        count = self.value(OVERFIT_SAMPLES) or 0
        return f"{count:.0f} samples" if count > 1 else "a batch"

    @property
    def share(self) -> float:
        """The share of the way it reached; with dropout off, if that is more."""
        quiet = self.value(OVERFIT_QUIET)
        if quiet is None or not np.isfinite(quiet):
            return self.fit.share
        return max(self.fit.share, self.plain.aim.share(quiet))

    @property
    def alike(self) -> bool:
        """Whether all samples get the same prediction at the end."""
        spread = self.value(OVERFIT_SPREAD)
        return spread is not None and spread <= ALIKE

    @property
    def is_small(self) -> bool:
        """Whether the model has few trainable values for its targets: it may fit by chance."""
        trainable, targets = self.value(OVERFIT_TRAINABLE), self.value(OVERFIT_TARGETS)
        return trainable is not None and targets is not None and trainable < _AMPLE * targets

    @property
    def exact(self) -> bool:
        """Whether the floor was computed, not estimated."""
        return self.value(OVERFIT_FLOOR) is not None

    @property
    def about_floor(self) -> str:
        """What the floor was computed from, or why it is not known."""
        for event in self.run.events_of(OverfitFloor):
            if event.what.trial == AS_IT_IS:
                return event.what.because or event.what.unknown
        return ""

    @property
    def way(self) -> str:
        """How far the loss fell, in a phrase."""
        least = floor(self.run, AS_IT_IS)
        if least is None:
            return f"{percent(self.share)} below the first loss"
        kind = "floor" if self.exact else "estimated minimum"
        about = f" ({self.about_floor})" if self.exact and self.about_floor else ""
        shown = least if abs(least) > 1e-4 * abs(self.plain.aim.reference) else 0.0
        way = f"{percent(self.share)} of the way{self._begins(least)}"
        return f"{way} to the {kind} {shown:.3g}{about}"

    def _begins(self, least: float) -> str:
        """Where that way begins, in a phrase: not at the first loss."""
        constant = self.value(OVERFIT_CONSTANT)
        if constant is None or one_answer(constant, least):
            return ""
        return f" from the best constant prediction ({constant:.3g})"

    def success(self) -> str:
        """Say by which numbers the samples are memorised."""
        exchanged = self.value(OVERFIT_EXCHANGED)
        # A model that is given the labels has these swapped, too: then it shows nothing.
        tells = exchanged is not None and self.plain.aim.share(exchanged) < REACHED
        after = f"; {exchanged:.3g} with inputs swapped between samples" if tells else ""
        quiet = "" if self.fit.fits else f", {self.value(OVERFIT_QUIET):.3g} with dropout off"
        return f"{self.samples} memorised: {went(self.fit)}{quiet}, {self.way}{after}"

    def cannot_tell(self) -> str | None:
        """Return why the trial cannot be judged, or None."""
        fit, aim = self.fit, self.plain.aim
        least, constant = floor(self.run, AS_IT_IS), self.value(OVERFIT_CONSTANT)
        if not np.isfinite(fit.start):
            return "the first loss is not finite"
        if min(fit.start, fit.best) < 0 and (least is None or not (self.exact or fit.fits)):
            return f"the loss falls below 0, and its minimum is unknown: {self.about_floor}"
        if least is None and self.value(OVERFIT_NOISE):
            return f"the loss draws random numbers, and its minimum is unknown: {self.about_floor}"
        if fit.share > _BEYOND:
            return (
                f"the loss falls to {fit.best:.3g}, far below the computed minimum {least or 0:.3g}"
            )
        if constant is None or least is None:
            return None
        if one_answer(constant, least):
            same = "all samples have the same target: a constant prediction fits them"
            return same if fit.fits and self.exact else None
        if aim.share(fit.start) >= REACHED:
            return f"{self.samples} are memorised before the first step: loss {fit.start:.3g}"
        if self.value(OVERFIT_NOISE) and constant - least < _DROWNED * abs(constant):
            return f"noise in the targets leaves nothing to learn: {constant:.3g} to {least:.3g}"
        if self.value(OVERFIT_RATE) == 0:
            return "the learning rate is 0"
        return None

    def cannot_move(self) -> tuple[str, str] | None:
        """Return why no parameter can change, and the fix, or None."""
        trainable, held = self.value(OVERFIT_TRAINABLE), self.value(OVERFIT_HELD)
        if self.value(OVERFIT_MOVED) != 0 or trainable is None:
            return None
        if trainable == 0:
            return (
                "no parameter requires a gradient",
                "unfreeze the parameters to train: `parameter.requires_grad_(True)`",
            )
        if held == 0:
            return (
                f"the optimizer holds none of the {trainable:,.0f} trainable values of the model",
                "build the optimizer from `model.parameters()` after the model is complete",
            )
        if self.value(OVERFIT_REACHED) == 0 and self.fitting is None:  # else it may be dead units
            return (
                f"no gradient reaches any of the {trainable:,.0f} trainable values",
                "look for `detach()`, `no_grad`, `.item()` or `.data` between model and loss",
            )
        return None

    def is_under_way(self, far: float) -> str | None:
        """Return why it is too early to say that the samples do not fit, or None."""
        fit = self.fit
        steps = "repeat it with more `steps` or `seconds`"
        if fit.falls and fit.ahead <= far and not (self.alike and self.fitting):
            return f"the loss still falls: {went(fit)}, {self.way}; {steps}"
        if fit.steps < _ENOUGH and not fit.lost:
            return f"only {fit.steps} steps fitted into the time limit: {steps}"
        return None

    @property
    def fitting(self) -> FitTrial | None:
        """The first trial with a change that memorises the same samples, or None."""
        return next((e for e in self.others if e.fit.fits and e.name not in CONTROLS), None)

    @property
    def out_of_time(self) -> bool:
        """Whether the experiment ran out of time."""
        return bool(self.run.events_of(OutOfTime))


def percent(share: float) -> str:
    """Format a share of the way, cut to 0 to 100 %."""
    shown = f"{100 * min(max(share, 0.0), 1.0):.0f}"
    return "none" if shown == "0" else f"{shown} %"


def went(fit: Fit) -> str:
    """Format a fit: `2.3 -> 0.512 in 80 steps`."""
    end = "" if not fit.lost else ", then not finite"
    return f"{fit.start:.3g} -> {fit.best:.3g} in {fit.steps} steps{end}"
