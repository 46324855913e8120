"""The clipping limit is far under ordinary gradient norms, and holds the training back."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_THRESHOLD_LIMIT, CLIP_THRESHOLD_LOSS, CLIP_THRESHOLD_NORM

_ALWAYS = 0.99  # share of steps that are clipped
_NEVER = 10  # times the largest norm: a limit that nothing will reach
_SURE = 4  # standard errors between the ends of two trials


@dataclass(frozen=True, slots=True)
class Norms:
    """The gradient norms of ordinary steps, and the limit that they are clipped to."""

    values: Values
    limit: float | None
    owner: str = ""

    @property
    def median(self) -> float:
        """The usual one."""
        return float(np.median(self.values))

    @property
    def advised(self) -> float:
        """The 95th percentile: a limit there cuts one step in twenty."""
        return float(np.percentile(self.values, 95))

    def __str__(self) -> str:
        return (
            f"of {len(self.values)} gradient norms{of(self.owner)} the median is"
            f" {self.median:.3g}, the 95th percentile {self.advised:.3g}, the largest"
            f" {self.values.max():.3g}"
        )


@dataclass(frozen=True, slots=True)
class Losses:
    """The level of a loss at the start, and after as many steps with either limit."""

    first: float
    present: float
    advised: float


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(CLIP_THRESHOLD_NORM, CLIP_THRESHOLD_LOSS),
    preview=True,
)
def misplaced_clip_threshold(
    facts: Facts, *, min_steps: int = 20, max_coefficient: float = 0.01
) -> Iterator[Verdict]:
    """The clipping limit is far under ordinary gradient norms, and holds the training back.

    ## What it does
    Looks at the gradient norms of at least `min_steps` steps before any clipping, and says which
    limit would cut one step in twenty: their 95th percentile. It speaks where the present limit
    leaves less than `max_coefficient` of the usual gradient, cuts practically every step, and the
    same steps from the same start with the advised limit get the loss down at least twice as far.
    A limit that cuts most steps and does no harm is a recipe, one that is never reached is a net:
    both are only noted.

    ## Why it matters
    With SGD such a limit is a learning rate a hundred times smaller than the one that was set; the
    model looks as if it could not learn.

    ## What to do
    Set the limit to about the 95th percentile, or leave it and raise the learning rate by as much.

    ## When it is wrong
    Only the first steps are looked at. Norms often fall in the first hundreds of steps and rise at
    the end; a limit that is meant for later may be low now. A learning rate that was tuned for
    always normalised gradients may need this limit, and diverge later without it.

    ## How to confirm
    - Repeat the run with the advised limit for an epoch.
    - Repeat it with the learning rate divided by the factor that clipping leaves.
    """
    has_limit = CLIP_THRESHOLD_LIMIT in facts.run
    for trial, series in facts.run[CLIP_THRESHOLD_NORM].items():
        finite = series.values[np.isfinite(series.values)].astype(np.float64)
        if len(finite) < min_steps or not np.median(finite) > 0:
            yield misplaced_clip_threshold.not_examined(
                f"{len(finite)} finite norms{of(trial)}, {min_steps} are needed"
            )
            continue
        found = facts.run[CLIP_THRESHOLD_LIMIT].get(trial) if has_limit else None
        limit = None if found is None else float(found.values[-1])
        yield from _judge(facts, Norms(finite, limit, trial), max_coefficient)


def _judge(facts: Facts, norms: Norms, max_coefficient: float) -> Iterator[Verdict]:
    limit = norms.limit
    if limit is None:
        yield misplaced_clip_threshold.clear(f"{norms}; nothing is clipped")
        return
    share, left = float((norms.values > limit).mean()), min(limit / norms.median, 1.0)
    held = _held_back(facts) if share >= _ALWAYS and left < max_coefficient else None
    if held is not None:
        yield misplaced_clip_threshold.finding(
            f"the limit of {limit:.3g} cuts {share:.0%} of the steps to {left:.2g} of their"
            f" gradient; {norms}. The loss goes from {held.first:.3g} to {held.present:.3g}; with a"
            f" limit of {norms.advised:.3g} it goes to {held.advised:.3g} in as many steps",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(
                    CLIP_THRESHOLD_NORM,
                    (0, len(norms.values) - 1),
                    f"median {norms.median:.3g}, limit {limit:.3g}",
                    norms.owner,
                ),
                *_losses(facts),
            ),
            fix=f"raise the limit from {limit:.3g} to about {norms.advised:.2g}",
        )
        return
    if share > 0.5:
        yield misplaced_clip_threshold.normal(
            f"the limit of {limit:.3g} cuts {share:.0%} of the first steps; {norms}: a limit of"
            f" {norms.advised:.2g} would cut one in twenty"
        )
    elif limit > _NEVER * norms.values.max():
        yield misplaced_clip_threshold.normal(
            f"nothing comes near the limit of {limit:.3g}; {norms}: a limit of {norms.advised:.2g}"
            " would cut one step in twenty"
        )
    yield misplaced_clip_threshold.clear(f"{norms}; the limit of {limit:.3g} cuts {share:.0%}")


def _held_back(facts: Facts) -> Losses | None:
    """What either limit makes of the loss, where the advised one is far better."""
    trials = facts.run[CLIP_THRESHOLD_LOSS]
    if "advised" not in trials:
        return None
    present, advised = (trials[each].values.astype(np.float64) for each in ("as set", "advised"))
    if not np.isfinite(present).all() or not np.isfinite(advised).all() or len(present) < 20:
        return None
    few = max(len(present) // 5, 5)
    ends = Losses(*(midmean(each) for each in (present[:few], present[-few:], advised[-few:])))
    error = midmean_error(noise([present[-few:], advised[-few:]]), few, few)
    gained = ends.first - ends.advised
    better = gained > 0.1 * abs(ends.first) and ends.first - ends.present < 0.5 * gained
    return ends if better and ends.present - ends.advised > _SURE * error else None


def _losses(facts: Facts) -> Iterator[Evidence]:
    for trial, series in facts.run[CLIP_THRESHOLD_LOSS].items():
        says = f"{series.values[0]:.3g} at first, {series.values[-1]:.3g} at last"
        yield Evidence(CLIP_THRESHOLD_LOSS, (series.first, series.last), says, trial)
