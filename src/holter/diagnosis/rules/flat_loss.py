"""The training loss is flat from the first step on."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import learned
from holter.diagnosis.facts.curve import Curve, recent, warmed_up
from holter.diagnosis.facts.label_trials import learned_aside
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import LOSS, UPDATE_RATIO

_PIECES = 10  # into which the curve is cut
_TINY_LOSS = 1e-6  # under this there is nothing left to learn
_CONVERGED = 0.5  # share of the loss of a constant answer that is gone where much was learned
_TINY_UPDATE = 1e-6  # relative change of a parameter per step that moves no loss


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    symptom=True,
)
def flat_loss(facts: Facts, *, min_steps: int = 50, min_drop: float = 0.01) -> Iterator[Verdict]:
    """The training loss is flat from the first step on.

    ## What it does
    Compares the first third of the losses with the last third, by the means of their middle
    halves, once the learning rate has warmed up. It needs at least `min_steps` losses and speaks
    only where the change is surely, by two standard errors, under `min_drop` of the loss. The loss
    is flat if the change is also lost in the noise (where there is none: under a tenth of
    `min_drop`) and every tenth of the curve stays at the same height. A loss that falls slowly but
    surely, that fell within the first steps, that came back, or that rises is not flat; nor is the
    flat loss of a model that has learned: half of what a constant answer would lose is gone.

    ## Why it matters
    A loss that has not moved from where it began means that nothing was learned yet. Whatever the
    reason, more steps of the same are unlikely to help.

    ## What to do
    If another finding explains it, mend that. Otherwise raise the learning rate tenfold, twice. If
    that changes nothing, look at the data: do the labels still belong to their inputs, are the
    inputs scaled, does the loss get what the model predicts?

    ## When it is wrong
    Continued training of a model that has converged already, by a loss whose scale is unknown.
    Tasks with a plateau before the first drop (retrieval, long dependencies, deep networks without
    normalisation): the loss may fall later. A loss with a large constant part, of which progress is
    less than `min_drop`. Losses that are no measure of progress are left out where they can be
    told: those of competing optimizers, and those that change their sign.

    ## How to confirm
    - Train on one single batch for 200 steps: a sound set-up drives that loss down; if it stays,
      the fault is in the model or the loop, not in the data.
    - Repeat the first 100 steps with ten times the learning rate: a loss that now falls was held
      by the rate.
    """
    curve = facts.signed_curve
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
    elif curve.changes_sign:
        yield flat_loss.not_examined(
            f"the loss{of(curve.owner)} changes its sign: it has no floor to fall to"
        )
    else:
        verdict = _judge(facts, curve, warm, min_drop)
        aside = learned_aside(facts.run) if isinstance(verdict, Finding) else None
        yield verdict if aside is None else flat_loss.clear(aside)


def _judge(facts: Facts, loss: Curve, warm: int, min_drop: float) -> Verdict:
    owner, values = loss.owner, loss.values
    curve = _measure(values, warm)
    size, change = abs(curve.first), abs(curve.fall)
    if size < _TINY_LOSS:
        return flat_loss.clear(f"the loss{of(owner)} is {size:.1g}: nothing is left to learn")
    drop = min_drop * size
    visible = max(3 * curve.error, drop / 10)  # without noise a tenth of a drop is progress
    went = (
        f"by {change / size:.2%}, from {curve.first:.4g} to {curve.last:.4g} over"
        f" {len(values) - warm} steps"
    )
    if change > visible:
        verb = "falls" if curve.fall > 0 else "rises"
        return flat_loss.clear(f"the loss{of(owner)} {verb} {went}")
    if (hidden := max(change, curve.fall + 2 * curve.error)) > drop:
        return flat_loss.not_examined(
            f"the loss{of(owner)} is too noisy to tell after {len(values)} steps: a change of up to"
            f" {hidden / size:.1%} may hide in it"
        )
    if abs(curve.mean_fall) > max(3 * curve.mean_error, drop / 10):
        return flat_loss.clear(
            f"the mean loss{of(owner)} changes by {abs(curve.mean_fall) / size:.2%}"
        )
    if curve.head - curve.last > max(drop, 4 * curve.noise):
        return flat_loss.clear(
            f"the loss{of(owner)} fell from {curve.head:.4g} to {curve.last:.4g} early on"
        )
    if curve.excursion > max(drop, 4 * curve.piece_error):  # 4, for ten pieces are tried
        return flat_loss.clear(
            f"the loss{of(owner)} moved by {curve.excursion / size:.2%} in between"
        )
    found = facts.baseline
    if (
        not isinstance(found, str)
        and (known := learned(facts, found, curve.last)).most > _CONVERGED
    ):
        return flat_loss.clear(f"the loss{of(owner)} is level, but {known}")
    identical = bool((values == values[0]).all())
    update = facts.median_update
    agrees = identical or (update is not None and update < _TINY_UPDATE)
    return flat_loss.finding(
        f"the loss{of(owner)} is flat: "
        + (f"{values[0]:.4g} bit for bit" if identical else f"it changes {went}"),
        confidence=Confidence.LIKELY if agrees else Confidence.HINT,
        # flatness begins where the loss could first have left the level it started from
        onset=int(loss.steps[warm + (len(values) - warm) // 3]),
        evidence=(
            Evidence(
                LOSS,
                loss.span,
                f"level of the first third {curve.first:.6g}, of the last {curve.last:.6g}; a"
                f" change of {visible / size:.2%} would have been seen",
                owner,
            ),
            *_update_evidence(facts, update),
        ),
        fix="raise the learning rate tenfold; if that changes nothing, train on one single batch",
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """A loss curve in numbers: its level at first and at last, and how well they are known."""

    first: float  # midmean of the first third after warm-up
    last: float  # midmean of the last third
    error: float  # standard error of their difference
    mean_fall: float  # the same difference by plain means, which a minority of batches can move
    mean_error: float
    noise: float  # standard deviation of one loss
    head: float  # largest of the very first losses
    excursion: float  # largest distance of any piece, warm-up included, from `first`
    piece_error: float  # standard error of that distance

    @property
    def fall(self) -> float:
        """How much the loss went down."""
        return self.first - self.last


def _measure(values: Values, warm: int) -> _Shape:
    third = (len(values) - warm) // 3  # the best two groups to see a trend by (Tukey's line)
    early, late = values[warm : warm + third], values[-third:]
    pieces = np.array_split(values, _PIECES)
    sigma = noise(pieces)
    first = midmean(early)
    return _Shape(
        first=first,
        last=midmean(late),
        error=midmean_error(sigma, third, third),
        mean_fall=float(early.mean() - late.mean()),
        mean_error=float(np.sqrt((early.var() + late.var()) / third)),
        noise=sigma,
        head=float(values[:5].max()),
        excursion=max(abs(midmean(piece) - first) for piece in pieces),
        piece_error=midmean_error(sigma, len(pieces[-1]), third),
    )


def _update_evidence(facts: Facts, update: float | None) -> Iterator[Evidence]:
    if update is not None:
        yield Evidence(
            UPDATE_RATIO, recent(facts), f"median over all parameters: {update:.1g} a step"
        )
