"""The training loss is flat from the first step on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import Baseline, Learned, learned
from holter.diagnosis.facts.curve import Curve, warmed_up
from holter.diagnosis.facts.progress import learning_in_the_lab, recent
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, UPDATE_RATIO, VAL_LOSS

_PIECES = 10  # into which the curve is cut
_SOME_RIGHT = 0.1  # of the way from chance to always right
_AS_MUCH = 0.8  # of the gain in training, as a share, that every validation has


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
)
def flat_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed after warm-up"] = 50,
    min_drop: Annotated[float, "change of the loss, as a share, that is not flat"] = 0.01,
    min_learned: Annotated[
        float, "share below the best constant prediction at which a flat loss is harmless"
    ] = 0.5,
    tiny_update: Annotated[float, "relative update that moves no loss"] = 1e-6,
) -> Iterator[Verdict]:
    """The training loss is flat from the first step on.

    ## What it does
    Compares the first and the last third of the losses after warm-up, by their interquartile means.
    The loss is flat if the difference is within the noise, a difference above `min_drop` is ruled
    out by two standard errors, and every tenth of the curve has the same level. It is likely if all
    losses are bitwise equal or the relative updates are tiny, otherwise a hint.

    ## Why it matters
    A loss that never leaves its initial level means that nothing was learned. More steps with the
    same settings are unlikely to help.

    ## Example
    ```python
    optimizer = SGD(model.parameters(), lr=1e-7)   # bad
    optimizer = SGD(model.parameters(), lr=1e-2)   # good
    ```

    ## What to do
    If another finding explains it, fix that. Otherwise raise the learning rate 10 times, twice. If
    that changes nothing, check the data: do labels belong to their inputs, are inputs scaled, does
    the loss receive what the model predicts? If the step learns when holter repeats it alone, check
    the loop around it: the optimizer, the schedule, code between steps.

    ## When it is wrong
    Training that continues from a converged model, with a loss whose best constant prediction is
    unknown. Tasks with a plateau before the first drop (retrieval, long dependencies, deep networks
    without normalisation): the loss may fall later. A loss with a large constant part hides
    progress below `min_drop`.

    ## How to confirm
    - Train on one batch for 200 steps: a working setup memorises it; if the loss stays flat, the
      fault is in the model or the loop, not in the data.
    - Repeat the first 100 steps with 10 times the learning rate: if the loss now falls, the
      learning rate was too low.
    """
    curve = facts.curve
    if isinstance(curve, str):
        yield flat_loss.not_examined(curve)
        return
    warm = warmed_up(facts, curve)
    if warm is None:
        yield flat_loss.not_examined("the learning rate is still warming up")
    elif len(curve) - warm < min_steps:
        yield flat_loss.not_examined(
            f"{len(curve) - warm} of the {min_steps} losses needed{of(curve.owner)} after warm-up"
        )
    else:
        shape = _measure(curve.values, warm)
        silent = _moves(curve, shape, min_drop) or _learned(facts, curve, shape, min_learned)
        yield silent or _finding(facts, curve, shape, min_drop=min_drop, tiny_update=tiny_update)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A loss curve in numbers: its level early and late, and their standard errors."""

    steps: int  # after warm-up
    first: float  # midmean of the first third after warm-up
    last: float  # midmean of the last third
    error: float  # standard error of their difference
    mean_fall: float  # their difference by plain means, which a minority of batches can move
    mean_error: float
    noise: float  # standard deviation of one loss
    head: float  # median of the very first losses
    excursion: float  # largest distance of any piece, warm-up included, from `first`
    piece_error: float  # standard error of that distance

    @property
    def fall(self) -> float:
        """How much the loss went down."""
        return self.first - self.last

    def visible(self, drop: float) -> float:
        """Return the smallest change that noise does not hide; without noise a tenth of a drop."""
        return max(3 * self.error, drop / 10)

    def __str__(self) -> str:
        change = abs(self.fall) / (abs(self.first) or 1)
        levels = f"from {self.first:.3g} to {self.last:.3g}"
        return f"by {percent(change)}, {levels} over {self.steps} steps"


def _measure(values: Values, warm: int) -> _Shape:
    third = (len(values) - warm) // 3  # the best two groups to see a trend by (Tukey's line)
    early, late = values[warm : warm + third], values[-third:]
    pieces = np.array_split(values, _PIECES)
    sigma = noise(pieces)
    first = midmean(early)
    return _Shape(
        steps=len(values) - warm,
        first=first,
        last=midmean(late),
        error=midmean_error(sigma, third, third),
        mean_fall=float(early.mean() - late.mean()),
        mean_error=float(np.sqrt((early.var() + late.var()) / third)),
        noise=sigma,
        head=float(np.median(values[:5])),
        excursion=max(abs(midmean(piece) - first) for piece in pieces),
        piece_error=midmean_error(sigma, len(pieces[-1]), third),
    )


def _moves(curve: Curve, shape: _Shape, min_drop: float) -> Verdict | None:
    """Return how the loss moves, or that noise may hide it; None if the loss is flat."""
    whose, size, change = of(curve.owner), abs(shape.first), abs(shape.fall)
    drop = min_drop * size
    if change > shape.visible(drop):
        verb = "falls" if shape.fall > 0 else "rises"
        return flat_loss.clear(f"the loss{whose} {verb} {shape}")
    if (hidden := max(change, shape.fall + 2 * shape.error)) > drop:
        return flat_loss.not_examined(
            f"the loss{whose} is too noisy after {len(curve)} steps: it may hide"
            + (f" a change of {percent(hidden / size)}" if hidden < size else " any change")
        )
    if abs(shape.mean_fall) > max(3 * shape.mean_error, drop / 10):
        return flat_loss.clear(
            f"the mean loss{whose} changes by {percent(abs(shape.mean_fall) / size)}"
        )
    if shape.head - shape.last > max(drop, 4 * shape.noise):
        return flat_loss.clear(
            f"the loss{whose} fell from {shape.head:.3g} to {shape.last:.3g} early on"
        )
    if shape.excursion > max(drop, 4 * shape.piece_error):  # 4, because ten pieces are tried
        return flat_loss.clear(
            f"the loss{whose} moved by {percent(shape.excursion / size)} in between"
        )
    return None


def _learned(facts: Facts, curve: Curve, shape: _Shape, min_learned: float) -> Verdict | None:
    """Return that a flat loss is harmless because it is that of a trained model, or None."""
    baseline = facts.baseline
    if isinstance(baseline, str):
        return None
    progress = learned(facts, baseline, shape.last)
    if progress.most <= min_learned and not _carries_over(facts, baseline, progress):
        return None
    return flat_loss.harmless(f"the loss{of(curve.owner)} is flat, but {progress}")


def _carries_over(facts: Facts, baseline: Baseline, progress: Learned) -> bool:
    """Return whether more is right than by chance, and all validations gain as the training does.

    Noisy labels leave no more to learn than that.
    """
    curves = facts.validation if VAL_LOSS in facts.run else ""
    if isinstance(curves, str) or not curves.is_comparable or progress.by_accuracy is None:
        return False
    worst = 1 - float(curves.validation.max()) / baseline.level
    return progress.by_accuracy > _SOME_RIGHT and worst > _AS_MUCH * progress.by_loss > 0


def _finding(
    facts: Facts, curve: Curve, shape: _Shape, *, min_drop: float, tiny_update: float
) -> Verdict:
    values, size = curve.values, abs(shape.first) or 1.0
    identical = bool((values == values[0]).all())
    update, lab = facts.median_update, learning_in_the_lab(facts)
    agrees = identical or (update is not None and update < tiny_update)
    evidence = [
        Evidence(
            LOSS,
            curve.span,
            f"{shape.first:.3g} in the first third, {shape.last:.3g} in the last; a change of"
            f" {percent(shape.visible(min_drop * size) / size)} would be visible",
            curve.owner,
        )
    ]
    if update is not None:
        evidence.append(
            Evidence(UPDATE_RATIO, recent(facts), f"median relative update {update:.1g} per step")
        )
    fix = "multiply the learning rate by 10; if that changes nothing, train on one batch"
    if lab is not None:
        evidence.append(lab)
        fix = "the step learns when repeated alone: check the loop, optimizer and schedule"
    return flat_loss.finding(
        f"the loss{of(curve.owner)} is flat: "
        + (f"{values[0]:.3g} bit for bit" if identical else f"it changes {shape}"),
        confidence=Confidence.LIKELY if agrees else Confidence.HINT,
        # flatness begins where the loss could first have left the level it started from
        onset=int(curve.steps[len(curve) - shape.steps + shape.steps // 3]),
        evidence=evidence,
        fix=fix,
    )
