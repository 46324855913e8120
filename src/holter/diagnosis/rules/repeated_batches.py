"""Every step sees one of the same few batches."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.events import LoaderSeen
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATA_BATCHES,
    INPUT_FINGERPRINT,
    TARGET_BATCH_ENTROPY,
    TARGET_MAX,
    TARGET_MIN,
)

_FEW = 0.1  # share of the batches there are
_FEWEST = 3  # batches that a pass should have shown
_DRAWN = 0.5  # share of the steps that a loader is drawn from in training
_BATCH = (TARGET_BATCH_ENTROPY, TARGET_MIN, TARGET_MAX)  # what is said of a batch


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(INPUT_FINGERPRINT,),
)
def repeated_batches(facts: Facts, *, min_steps: int = 20) -> Iterator[Verdict]:
    """Every step sees one of the same few batches.

    ## What it does
    Each batch that the model is given leaves a fingerprint. Counts how many different ones there
    are among at least `min_steps` sampled steps, and speaks where they are fewer than a tenth of
    what passes over the loader would have shown at those steps. It is a hint where that is all that
    is known, and certain where the targets repeat with the inputs.

    ## Why it matters
    The model learns a handful of batches by heart and never sees the rest of the data. The training
    loss looks splendid.

    ## What to do
    Iterate over the loader: `for x, y in loader`. `next(iter(loader))` inside the loop begins anew
    each time; an index that is not advanced does the same.

    ## When it is wrong
    Models that are called with the same tensor at every step by design, such as a whole graph, are
    told by targets that go on changing; with a loss that is written by hand, they are not.
    Overfitting one batch as a test, training on the whole data at once and training without a
    loader draw nothing from a loader, and are not looked at.

    ## How to confirm
    - Print `x.sum()` for ten steps: different batches have different sums.
    """
    loader = _loader(facts)
    seen = {owner: _finite(prints) for owner, prints in facts.run[INPUT_FINGERPRINT].items()}
    seen = {owner: prints for owner, prints in seen.items() if len(prints) >= min_steps}
    if not seen or loader is None:
        most = max((len(each) for each in facts.run[INPUT_FINGERPRINT].values()), default=0)
        yield repeated_batches.not_examined(
            (
                f"{most} of the {min_steps} steps needed"
                if most < min_steps
                else "no input is a number"
            )
            if not seen
            else "no loader whose length is known is drawn from at most steps"
        )
        return
    # Of several models, one may be given the same at every step by design.
    owner = max(seen, key=lambda each: len(np.unique(seen[each].values)))
    prints = seen[owner]
    different, expected = len(np.unique(prints.values)), loader.shows(prints)
    said = (
        f"{owner} was given {different} different batch{'es' * (different != 1)} on {len(prints)}"
        f" sampled steps; its loader has {loader.batches}"
    )
    targets = _different_targets(facts, prints)
    if expected < _FEWEST:
        yield repeated_batches.not_examined(f"{said}, of which these steps show {expected}")
    elif different > max(_FEW * expected, 1):
        yield repeated_batches.clear(said)
    elif targets is not None and targets > different:
        yield repeated_batches.clear(f"{said}, but {targets} different targets")
    else:
        span = (prints.first, prints.last)
        yield repeated_batches.finding(
            said,
            confidence=Confidence.HINT if targets is None else Confidence.CERTAIN,
            onset=prints.first,
            evidence=(
                Evidence(
                    INPUT_FINGERPRINT,
                    span,
                    f"{different} different among {len(prints)}; {expected} expected",
                    owner,
                ),
            ),
            fix="iterate over the loader, `for x, y in loader`, instead of beginning it anew",
        )


@dataclass(frozen=True, slots=True)
class _Loader:
    """The loader that training draws from."""

    batches: int
    shuffled: bool
    a_step: int  # batches that a step takes

    def shows(self, prints: Series) -> int:
        """How many different batches plain passes would have shown at the steps of some readings.

        Sampled steps are evenly spaced: without shuffling they may meet the same few batches.
        """
        period = max(self.batches // self.a_step, 1)
        if self.shuffled:
            return min(len(prints), period)
        return min(len(np.unique(prints.steps % each)) for each in (period, period + 1))


def _loader(facts: Facts) -> _Loader | None:
    """The loader that is drawn from most, if that is at most steps."""
    drawn = dict(facts.run[DATA_BATCHES].items()) if DATA_BATCHES in facts.run else {}
    read = max((len(each) for each in facts.run[INPUT_FINGERPRINT].values()), default=0)
    used = max(drawn, key=lambda owner: len(drawn[owner]), default=None)
    if used is None or len(drawn[used]) < _DRAWN * read:
        return None
    for event in facts.run.events_of(LoaderSeen):
        if event.what.loader == used and event.what.batches is not None:
            a_step = max(int(np.median(drawn[used].values)), 1)
            return _Loader(event.what.batches, event.what.shuffled, a_step)
    return None


def _finite(series: Series) -> Series:
    kept = np.isfinite(series.values)
    return Series(series.steps[kept], series.values[kept])


def _different_targets(facts: Facts, prints: Series) -> int | None:
    """How many different targets there surely were at these steps; None where that is unknown.

    Readings of zeros and ones, as of batches of one class and of yes and no, say nothing.
    """
    counts = [
        len(np.unique(each.values[np.isin(each.steps, prints.steps) & np.isfinite(each.values)]))
        for signal in _BATCH
        if signal in facts.run
        for each in facts.run[signal].values()
        if not np.isin(np.nan_to_num(each.values), (0, 1)).all()
    ]
    return max(counts, default=None)
