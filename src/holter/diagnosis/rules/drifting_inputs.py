"""Training inputs change from epoch to epoch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured as measured_of
from holter.diagnosis.facts.stream import Stream, Values, failed
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import number, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_REWRITTEN,
    REFETCH_SAMPLES,
    REFETCH_WANDERING,
    STREAM_MEAN,
    STREAM_STD,
    Signal,
)

Bools = npt.NDArray[np.bool_]

_FIX = (
    "do not change the data in place: return a copy, `x = x.clone()`, from `__getitem__` and"
    " transforms, and fit scalers once before the training"
)
_DEVIATIONS = 6.0  # standard errors that a change has to exceed where passes are read in part


@dataclass(frozen=True, slots=True)
class Drift:
    """The change of mean or standard deviation of the inputs from the first pass to the last."""

    signal: Signal
    first: float
    last: float
    size: float  # of a mean in standard deviations, of a standard deviation as a ratio above 1
    excess: float  # over the limit, above 1 if it is exceeded

    @property
    def says(self) -> str:
        """The change in words."""
        what = "mean" if self.signal is STREAM_MEAN else "standard deviation"
        return f"the {what} of the inputs goes from {number(self.first)} to {number(self.last)}"


@exception
def chosen_order(stream: Stream, drift: Drift) -> str | None:
    """The script chooses the samples of each pass, for example easy ones first."""
    if stream.setup is not None and stream.setup.order:
        return None
    return f"{drift.says}; the script chooses the samples of each pass"


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(STREAM_MEAN, STREAM_STD),
    exceptions=(chosen_order,),
    preview=True,
)
def drifting_inputs(
    facts: Facts,
    *,
    min_passes: Annotated[int, "passes over the data needed"] = 3,
    mean: Annotated[float, "shift of the mean in standard deviations"] = 0.5,
    scale: Annotated[float, "ratio of the standard deviations"] = 1.5,
    severe: Annotated[float, "multiple of these limits that is always reported"] = 4.0,
    straight: Annotated[float, "length of the path over the net change"] = 1.3,
    min_rewritten: Annotated[float, "share of samples that change when they are read"] = 0.2,
    min_wandering: Annotated[float, "difference of far versions over that of near ones"] = 1.5,
    min_fetched: Annotated[int, "samples fetched several times"] = 12,
) -> Iterator[Verdict]:
    """Training inputs change from epoch to epoch.

    ## What it does
    Compares mean and standard deviation of the inputs between passes over a training loader that
    all contain the same samples. It reports a change in one direction if the run failed, and always
    reports a very large one. It also reports data sets whose stored values change when a sample is
    read, or whose samples drift further from the original each time.

    ## Why it matters
    The same samples must have the same distribution in every epoch. If it drifts, the model fits
    inputs that exist only in training, and validation or production data do not match them.

    ## Example
    ```python
    self.images[i].mul_(contrast); return self.images[i]   # bad
    return self.images[i] * contrast                       # good
    ```

    ## What to do
    Do not change the data in place in `__getitem__`, in a transform or in the training loop: return
    a changed copy. Fit scalers once, before the training. Reset state that accumulates over epochs.

    ## When it is wrong
    An augmentation that deliberately becomes stronger over the epochs.

    ## How to confirm
    - Print mean and standard deviation of `dataset[0][0]` after each epoch: without random
      augmentation they must not change.
    """
    rewritten = measured_of(facts.run, DATASET_REWRITTEN, "train") or 0.0
    if rewritten >= min_rewritten:
        yield drifting_inputs.finding(
            "reading a sample changes the values that the data set stores, in"
            f" {percent(rewritten)} of the samples tried: changes accumulate from epoch to epoch",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_REWRITTEN,
                    (0, 0),
                    "stored rows differ before and after `dataset[i]`",
                    "train",
                ),
            ),
            fix=_FIX,
        )
        return
    wandering = measured_of(facts.run, REFETCH_WANDERING, "train") or 0.0
    fetched = int(measured_of(facts.run, REFETCH_SAMPLES, "train") or 0)
    if wandering >= min_wandering and fetched >= min_fetched:
        yield drifting_inputs.finding(
            f"reading a sample changes it: versions several reads apart differ {wandering:.2g}"
            f" times as much as consecutive ones, in {fetched} samples",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(
                    REFETCH_WANDERING,
                    (0, 0),
                    "distant versions of `dataset[i]` differ more than consecutive ones",
                    "train",
                ),
            ),
            fix=_FIX,
        )
        return
    stream = next((each for each in facts.streams if each.setup is not None), None)
    usable = (
        np.zeros(0, bool)
        if stream is None
        else stream.whole & np.isfinite(stream.mean) & np.isfinite(stream.std)
    )
    count = int(usable.sum())
    if stream is None or count < min_passes:
        yield drifting_inputs.not_examined(f"{count} of the {min_passes} passes needed were read")
        return
    drift = _drift(stream, usable, mean, scale, straight)
    if drift is None or drift.excess < 1:
        lows, highs = stream.mean[usable].min(), stream.mean[usable].max()
        yield drifting_inputs.clear(
            f"the mean of the inputs stays between {number(lows)} and {number(highs)} in {count}"
            " passes"
        )
        return
    excuse = drifting_inputs.excused(stream, drift)
    if excuse is not None:
        yield excuse
        return
    failure = failed(facts)
    measured = f"{drift.says} in {count} passes over the same samples"
    if failure is None and drift.excess < severe:
        yield drifting_inputs.harmless(f"{measured}, but {facts.run_outcome.says}")
        return
    steps = stream.steps[usable]
    yield drifting_inputs.finding(
        measured,
        confidence=Confidence.LIKELY if drift.excess >= severe else Confidence.HINT,
        onset=int(steps[0]),
        evidence=(
            Evidence(drift.signal, (int(steps[0]), int(steps[-1])), drift.says, stream.loader),
        ),
        fix=_FIX,
    )


def _drift(
    stream: Stream,
    usable: Bools,
    mean: float,
    scale: float,
    straight: float,
) -> Drift | None:
    """Return the larger of the changes of mean and standard deviation, or None."""
    means, stds, read = stream.mean[usable], stream.std[usable], stream.read[usable]
    if not stds[0] > 0 or not stds[-1] > 0:
        return None
    error = 0.0 if (read >= stream.samples[usable]).all() else _DEVIATIONS / np.sqrt(read.min())
    found = []
    shift = abs(means[-1] - means[0]) / max(stds[0], stds[-1])
    if _is_straight(means, straight) and shift > error:
        found.append(Drift(STREAM_MEAN, means[0], means[-1], shift, shift / mean))
    ratio = max(stds[-1] / stds[0], stds[0] / stds[-1])
    if _is_straight(np.log(np.maximum(stds, 1e-30)), straight) and ratio > 1 + error:
        found.append(Drift(STREAM_STD, stds[0], stds[-1], ratio, np.log(ratio) / np.log(scale)))
    return max(found, key=lambda drift: drift.excess, default=None)


def _is_straight(values: Values, straight: float) -> bool:
    """Whether the values move in one direction, apart from small steps back."""
    moved = abs(values[-1] - values[0])
    return bool(moved > 0 and np.abs(np.diff(values)).sum() <= straight * moved)
