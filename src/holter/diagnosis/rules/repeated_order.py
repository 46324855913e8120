"""Every epoch visits the samples in the same order."""

import itertools
from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import exception, rule
from holter.record import Series
from holter.record.events import LoaderSeen, PassOrder
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATA_BATCHES, INPUT_MEAN

_FEWEST = 40  # successive steps that tell whether neighbouring batches are alike


@exception
def chosen_order(_: Facts, order: str, measured: str, __: float) -> str | None:
    """A sampler or an iterable data set of the script decides the order."""
    return f"{measured}; the script decides it" if order == "" else None


@exception
def mixed_data(facts: Facts, order: str, measured: str, alike: float) -> str | None:
    """Data without an order of their own, such as a file that was shuffled once, lose little."""
    if order != "sequential" or _ordered(facts, alike) is not None:
        return None
    return f"{measured}, without shuffling; neighbouring batches are not alike"


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(DATA_BATCHES,),
    exceptions=(chosen_order, mixed_data),
)
def repeated_order(
    facts: Facts,
    *,
    min_passes: Annotated[int, "passes over the data needed"] = 2,
    min_share: Annotated[float, "share of the passes that repeat the one before"] = 0.9,
    alike: Annotated[float, "correlation of neighbouring batches of ordered data"] = 0.5,
) -> Iterator[Verdict]:
    """Every epoch visits the samples in the same order.

    ## What it does
    Compares the first batches of each pass over the training loader. It reports passes that repeat
    the one before although the loader shuffles. Without shuffling it reports data whose
    neighbouring batches are alike, if the training learned nothing or diverged.

    ## Why it matters
    The batches are the same in every epoch: gradient noise does not average out over epochs, and
    the model always sees some samples last. A seed that is set again in every epoch repeats the
    masks of dropout and the choices of augmentation as well.

    ## Example
    ```python
    for epoch in range(epochs): torch.manual_seed(0); train(loader)    # bad
    torch.manual_seed(0); [train(loader) for _ in range(epochs)]       # good
    ```

    ## What to do
    Set seeds once, before the loop. Create the loader and its generator once. With a
    `DistributedSampler`, call `sampler.set_epoch(epoch)` in every epoch. Otherwise pass
    `shuffle=True`.

    ## When it is wrong
    The order is fixed on purpose, for example to compare two trainings batch by batch.

    ## How to confirm
    - Print the labels of the first batch in two epochs: they should differ.
    """
    passes = [event for event in facts.run.events_of(PassOrder) if event.what.steps > 0]
    if len(passes) < min_passes:
        yield repeated_order.not_examined(
            f"{len(passes)} of the {min_passes} passes over the training data needed"
        )
        return
    pairs = list(itertools.pairwise(event.what for event in passes))
    repeats = sum(_is_same(*pair) for pair in pairs)
    measured = f"{repeats} of {len(pairs)} passes repeat the batches of the pass before"
    if repeats < min_share * len(pairs):
        yield repeated_order.clear(measured)
        return
    loaders = {event.what.loader: event.what for event in facts.run.events_of(LoaderSeen)}
    order = loaders[passes[0].what.loader].order if passes[0].what.loader in loaders else ""
    excuse = repeated_order.excused(facts, order, measured, alike)
    if excuse is not None:
        yield excuse
        return
    damage = damage_of(repeated_order, facts, measured, regardless=order == "shuffled")
    if not isinstance(damage, Damage):
        yield damage
        return
    ordered = _ordered(facts, alike)
    reason = "although the loader shuffles" if order == "shuffled" else "and data are not shuffled"
    yield repeated_order.finding(
        f"{measured}, {reason}" + ("" if ordered is None else f"; {ordered.says}"),
        confidence=Confidence.HINT if order == "shuffled" else damage.confidence,
        onset=passes[1].step,
        evidence=(
            Evidence(DATA_BATCHES, (passes[0].step, passes[-1].step), measured, _owner(facts)),
            *(() if ordered is None else (ordered,)),
            *damage.evidence,
        ),
        fix="set seeds once, before the loop over epochs, and create the loader once; with a"
        " `DistributedSampler` call `sampler.set_epoch(epoch)`"
        if order == "shuffled"
        else "shuffle the training data: `DataLoader(..., shuffle=True)`",
    )


def _is_same(before: PassOrder, after: PassOrder) -> bool:
    """Whether inputs or labels come in the same order; augmented inputs never do."""
    if before.batches != after.batches:
        return False
    return (before.inputs is not None and before.inputs == after.inputs) or (
        before.labels is not None and before.labels == after.labels
    )


def _owner(facts: Facts) -> str:
    """Return the loader that most steps read from."""
    reads = dict(facts.run[DATA_BATCHES].items())
    return max(reads, key=lambda name: len(reads[name]))


def _ordered(facts: Facts, alike: float) -> Evidence | None:
    """Return evidence that neighbouring batches are alike, as of sorted data, or None."""
    for model, means in facts.run[INPUT_MEAN].items() if INPUT_MEAN in facts.run else ():
        correlation = _neighbours(means)
        if correlation is not None and correlation > alike:
            return Evidence(
                INPUT_MEAN,
                (means.first, means.last),
                f"the means of neighbouring batches correlate by {correlation:.2f}",
                model,
            )
    return None


def _neighbours(series: Series) -> float | None:
    """Return the correlation of readings one step apart, or None where there are too few."""
    together = np.flatnonzero(np.diff(series.steps) == 1)
    if len(together) < _FEWEST:
        return None
    one, other = series.values[together], series.values[together + 1]
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.any() or not one[finite].std() or not other[finite].std():
        return None
    return float(np.corrcoef(one[finite], other[finite])[0, 1])
