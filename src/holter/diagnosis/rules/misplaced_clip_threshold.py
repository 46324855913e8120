"""The clipping threshold is far below typical gradient norms and slows down training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_THRESHOLD_LIMIT, CLIP_THRESHOLD_LOSS, CLIP_THRESHOLD_NORM

_NEVER = 10  # times the largest norm: a threshold that no gradient will reach
_FEWEST = 20  # losses of a trial that can be compared


@dataclass(frozen=True, slots=True)
class Norms:
    """The gradient norms before clipping, and the threshold."""

    values: Values
    limit: float | None
    owner: str = ""

    @property
    def median(self) -> float:
        """The median norm."""
        return float(np.median(self.values))

    @property
    def advised(self) -> float:
        """The 95th percentile: a threshold there clips one step in twenty."""
        return float(np.percentile(self.values, 95))

    @property
    def clipped(self) -> float:
        """The share of the steps that are clipped."""
        return 0.0 if self.limit is None else float((self.values > self.limit).mean())

    @property
    def left(self) -> float:
        """The share of the median norm that clipping leaves."""
        return 1.0 if self.limit is None else min(self.limit / self.median, 1.0)

    def __str__(self) -> str:
        return (
            f"{len(self.values)} gradient norms{of(self.owner)}: median {self.median:.3g}, 95th"
            f" percentile {self.advised:.3g}, maximum {self.values.max():.3g}"
        )


@dataclass(frozen=True, slots=True)
class ThresholdLosses:
    """The loss at the start, and after as many steps with either threshold."""

    first: float
    present: float
    advised: float
    error: float  # standard error of their difference

    @property
    def gain(self) -> float:
        """By how much the loss falls with the advised threshold."""
        return self.first - self.advised


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(CLIP_THRESHOLD_NORM, CLIP_THRESHOLD_LOSS),
    preview=True,
)
def misplaced_clip_threshold(
    facts: Facts,
    *,
    min_steps: Annotated[int, "gradient norms needed"] = 20,
    min_clipped: Annotated[float, "share of the steps that are clipped"] = 0.99,
    max_coefficient: Annotated[float, "threshold over the median norm"] = 0.01,
    min_gain: Annotated[float, "fall of the loss with the advised threshold, as a share"] = 0.1,
    max_kept: Annotated[float, "share of that fall that the present threshold reaches"] = 0.5,
    standard_errors: Annotated[float, "between the losses that both thresholds reach"] = 4.0,
) -> Iterator[Verdict]:
    """The clipping threshold is far below typical gradient norms and slows down training.

    ## What it does
    Measures gradient norms before clipping; their 95th percentile is the advised threshold. It
    reports a threshold that clips practically every step to a small fraction of its gradient, if
    the same steps from the same start lower the loss much further with the advised threshold.

    ## Why it matters
    With SGD such a threshold makes the learning rate a hundred times smaller than configured; the
    model seems unable to learn.

    ## Example
    ```python
    clip_grad_norm_(model.parameters(), 1e-3)  # bad
    clip_grad_norm_(model.parameters(), 1.0)   # good
    ```

    ## What to do
    Set the threshold to about the 95th percentile, or keep it and raise the learning rate by the
    same factor.

    ## When it is wrong
    Only the first steps are measured. Norms often fall in the first hundreds of steps and rise at
    the end; a threshold chosen for later steps may be too low now. A learning rate tuned for
    normalised gradients may need this threshold and diverge later without it.

    ## How to confirm
    - Repeat the run with the advised threshold for an epoch.
    - Repeat it with the learning rate divided by the median clipping coefficient.
    """
    has_limit = CLIP_THRESHOLD_LIMIT in facts.run
    for trial, series in facts.run[CLIP_THRESHOLD_NORM].items():
        finite = series.values[np.isfinite(series.values)].astype(np.float64)
        if len(finite) < min_steps or not np.median(finite) > 0:
            yield misplaced_clip_threshold.not_examined(
                f"{len(finite)} finite norms{of(trial)}, {min_steps} are needed"
            )
            continue
        limits = facts.run[CLIP_THRESHOLD_LIMIT].get(trial) if has_limit else None
        norms = Norms(finite, None if limits is None else float(limits.values[-1]), trial)
        if norms.limit is None:
            yield misplaced_clip_threshold.clear(f"{norms}; nothing is clipped")
        elif norms.clipped < min_clipped or norms.left >= max_coefficient:
            yield from _clear(norms, norms.limit)
        elif (losses := _losses(facts)) is None:
            yield misplaced_clip_threshold.not_examined(
                f"{norms}; no finite losses with the advised threshold to compare"
            )
        else:
            better = losses.gain > min_gain * abs(losses.first)
            slower = losses.first - losses.present < max_kept * losses.gain
            apart = losses.present - losses.advised > standard_errors * losses.error
            yield _verdict(facts, norms, losses, damage=better and slower and apart)


def _verdict(facts: Facts, norms: Norms, losses: ThresholdLosses, *, damage: bool) -> Verdict:
    summary = (
        f"the threshold {norms.limit:.3g} clips {percent(norms.clipped)} of the steps to"
        f" {percent(norms.left)} of the median gradient norm {norms.median:.3g}: the loss goes from"
        f" {losses.first:.3g} to {losses.present:.3g}, and to {losses.advised:.3g} with a threshold"
        f" of {norms.advised:.3g}"
    )
    if not damage:
        return misplaced_clip_threshold.harmless(summary)
    span = (0, len(norms.values) - 1)
    return misplaced_clip_threshold.finding(
        summary,
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(CLIP_THRESHOLD_NORM, span, str(norms), norms.owner),
            *_evidence(facts),
        ),
        fix=f"raise the threshold from {norms.limit:.3g} to about {norms.advised:.2g}",
    )


def _clear(norms: Norms, limit: float) -> Iterator[Verdict]:
    clipped = f"the threshold {limit:.3g} clips {percent(norms.clipped)} of the steps; {norms}"
    if norms.clipped > 0.5:
        yield misplaced_clip_threshold.normal(
            f"{clipped}; {norms.advised:.2g} would clip one step in twenty"
        )
    elif limit > _NEVER * norms.values.max():
        yield misplaced_clip_threshold.normal(
            f"no gradient comes near the threshold {limit:.3g}; {norms}"
        )
    yield misplaced_clip_threshold.clear(clipped)


def _losses(facts: Facts) -> ThresholdLosses | None:
    """Return the losses that either threshold reaches, or None if they cannot be compared."""
    trials = facts.run[CLIP_THRESHOLD_LOSS]
    if "advised" not in trials:
        return None
    present, advised = (trials[name].values.astype(np.float64) for name in ("as set", "advised"))
    if not np.isfinite([*present, *advised]).all() or len(present) < _FEWEST:
        return None
    few = max(len(present) // 5, 5)
    parts = (present[:few], present[-few:], advised[-few:])
    error = midmean_error(noise(parts[1:]), few, few)
    first, present_end, advised_end = (midmean(part) for part in parts)
    return ThresholdLosses(first, present_end, advised_end, error)


def _evidence(facts: Facts) -> Iterator[Evidence]:
    for trial, series in facts.run[CLIP_THRESHOLD_LOSS].items():
        says = f"{series.values[0]:.3g} at the start, {series.values[-1]:.3g} at the end"
        yield Evidence(CLIP_THRESHOLD_LOSS, (series.first, series.last), says, trial)
