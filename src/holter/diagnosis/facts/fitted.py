"""The trials of `overfit-batch` taken together: what was reached, and what can be told of it."""

from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts.fits import (
    ALIKE,
    AS_IT_IS,
    REACHED,
    Fit,
    Trial,
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

FEWER = "2 samples"
CONTROLS = (FEWER, "labels exchanged")  # what they show is no cause
_BEYOND = 1.5  # share of the way: so far under a floor, it is none
_DROWNED = 0.1  # of the loss of one answer for all: noise leaves less than this to learn
_ENOUGH = 50  # steps that a trial needs to be judged
_AMPLE = 10  # trainable values for each target


@dataclass(frozen=True, slots=True)
class Fitted:
    """The trial as it is, and those with a change."""

    run: Run
    plain: Trial
    others: tuple[Trial, ...]

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
        """How far it came, and to which floor that would go."""
        least = floor(self.run, AS_IT_IS)
        if least is None:
            return f"{percent(self.share)} of the first loss is gone"
        kind = "floor" if self.exact else "least of free predictions,"
        about = f" ({self.about_floor})" if self.exact and self.about_floor else ""
        shown = least if abs(least) > 1e-4 * abs(self.plain.aim.reference) else 0.0
        return f"{percent(self.share)} of the way to the {kind} {shown:.4g}{about}"

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
        return f"{self.samples} learned by heart: {went(self.fit)}{quiet}, {self.way}{after}"

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
            return f"the loss still falls: {went(fit)}, {self.way}; {steps}"
        if fit.steps < _ENOUGH and not fit.lost:
            return f"{fit.steps} steps in the time given are too few: {steps}"
        return None

    @property
    def fitting(self) -> Trial | None:
        """The first trial with a change in which the same samples fit."""
        return next((e for e in self.others if e.fit.fits and e.name not in CONTROLS), None)

    @property
    def out_of_time(self) -> bool:
        """Whether the experiment ran out of time."""
        return bool(self.run.events_of(OutOfTime))


def percent(share: float) -> str:
    """A share of the way, from 0 to 1."""
    return f"{min(max(share, 0.0), 1.0):.0%}"


def went(fit: Fit) -> str:
    """`2.303 -> 0.5123 in 80 steps`."""
    end = "" if not fit.lost else ", then not finite"
    return f"{fit.start:.4g} -> {fit.best:.4g} in {fit.steps} steps{end}"
