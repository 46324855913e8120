"""Every epoch visits the samples in the same order."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import exception, rule
from holter.record import Series
from holter.record.events import LoaderSeen, PassOrder
from holter.record.findings import (
    Confidence,
    Evidence,
    Level,
    Normal,
    NotExamined,
    Severity,
    Verdict,
)
from holter.record.signals import (
    DATA_BATCHES,
    INPUT_FINGERPRINT,
    INPUT_MEAN,
    INPUT_TOKENS,
    LOSS,
    TARGET_MAX,
    TARGET_MIN,
    Signal,
)

_FEWEST = 40  # successive steps that tell whether neighbouring batches are alike
_FEW = 8  # batches of a pass whose order hardly matters
_PAIRS = 20  # batches a pass apart that tell whether passes without a loader repeat
_ORDERED = (  # what is alike in neighbouring batches of ordered data
    (INPUT_MEAN, "means"),
    (INPUT_TOKENS, "lengths"),
    (TARGET_MIN, "smallest targets"),
    (TARGET_MAX, "largest targets"),
)


@dataclass(frozen=True, slots=True)
class _Passes:
    """Passes over the training data that repeat the order of the one before."""

    says: str
    order: str  # of the loader; "sequential" where the script makes the batches
    batches: int
    span: tuple[int, int]
    evidence: tuple[Signal, str]  # and its owner
    by_loader: bool = True


@exception
def chosen_order(_: Facts, passes: _Passes, __: Evidence | None) -> str | None:
    """A sampler or an iterable data set of the script determines the order."""
    return f"{passes.says}; the script determines the order" if passes.order == "" else None


@exception
def few_batches(_: Facts, passes: _Passes, __: Evidence | None) -> str | None:
    """A pass has so few batches that their order hardly matters."""
    if passes.order != "sequential" or passes.batches >= _FEW:
        return None
    return f"{passes.says}, without shuffling; a pass has {passes.batches} batches"


@exception
def carried_state(facts: Facts, passes: _Passes, ordered: Evidence | None) -> str | None:
    """A recurrent model may carry its state from batch to batch, which requires the order."""
    if passes.order != "sequential" or ordered is None or facts.run_outcome.bad:
        return None
    cells = [name for name in facts.run.meta.parameters if "weight_hh" in name]
    return f"{passes.says}; {ordered.says}; `{cells[0]}` is recurrent" if cells else None


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS,),
    exceptions=(chosen_order, few_batches, carried_state),
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
    Compares the first batches of each pass over the training loader or, if the script creates
    batches itself, model inputs one pass apart. It reports passes that repeat the previous one
    although the loader shuffles. Without shuffling, it reports data with similar neighbouring
    batches, such as windows of a time series, if the training learned nothing or diverged;
    otherwise, and for other unshuffled loader data, it is a hint of severity info.

    ## Why it matters
    The batches are the same in every epoch: gradient noise does not average out over epochs, and
    some samples always come last. A seed set in every epoch also repeats dropout masks and
    augmentations.

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
    The order is fixed on purpose, for example to compare two runs batch by batch, or because a
    hidden state is carried from batch to batch.

    ## How to confirm
    - Print the labels of the first batch in two epochs: they should differ.
    """
    passes = (
        _of_loader(facts, min_passes, min_share)
        if facts.run.events_of(PassOrder)
        else _by_hand(facts, min_passes, min_share)
    )
    if not isinstance(passes, _Passes):
        yield passes
        return
    ordered = _ordered(facts, alike)
    excuse = repeated_order.excused(facts, passes, ordered)
    if excuse is not None:
        yield excuse
        return
    order = passes.order
    if order == "sequential" and ordered is None:
        yield _of_mixed_data(facts, passes)
        return
    damage = damage_of(repeated_order, facts, passes.says, regardless=order == "shuffled")
    if not isinstance(damage, Damage):
        yield damage if ordered is None else _of_ordered_data(facts, passes, ordered, damage)
        return
    reason = "although the loader shuffles" if order == "shuffled" else "and data are not shuffled"
    yield repeated_order.finding(
        f"{passes.says}, {reason}" + ("" if ordered is None else f"; {ordered.says}"),
        confidence=Confidence.HINT if order == "shuffled" else damage.confidence,
        onset=passes.span[0],
        evidence=(
            _evidence(passes),
            *(() if ordered is None else (ordered,)),
            *damage.evidence,
        ),
        fix="set seeds once, before the loop over epochs, and create the loader once; with a"
        " `DistributedSampler` call `sampler.set_epoch(epoch)`"
        if order == "shuffled"
        else "shuffle the training data: `DataLoader(..., shuffle=True)`",
    )


def _of_loader(facts: Facts, min_passes: int, min_share: float) -> _Passes | Verdict:
    """Return the passes over the training loader, or the verdict if they do not repeat."""
    passes = [event for event in facts.run.events_of(PassOrder) if event.what.steps > 0]
    if len(passes) < min_passes:
        return repeated_order.not_examined(
            f"{len(passes)} of the {min_passes} passes over the training data needed"
        )
    pairs = list(itertools.pairwise(event.what for event in passes))
    repeats = sum(_is_same(*pair) for pair in pairs)
    measured = f"{repeats} of {len(pairs)} passes repeat the batches of the pass before"
    if repeats < min_share * len(pairs):
        return repeated_order.clear(measured)
    first = passes[0].what
    loaders = {event.what.loader: event.what for event in facts.run.events_of(LoaderSeen)}
    order = loaders[first.loader].order if first.loader in loaders else ""
    span = passes[1].step, passes[-1].step
    return _Passes(measured, order, first.batches, span, (DATA_BATCHES, _owner(facts)))


def _by_hand(facts: Facts, min_passes: int, min_share: float) -> _Passes | Verdict:
    """Return the passes that a script makes without a loader, by when its batches come again."""
    prints_of = facts.run[INPUT_FINGERPRINT].items() if INPUT_FINGERPRINT in facts.run else ()
    for model, prints in prints_of:
        at = dict(zip(prints.steps.tolist(), prints.values.tolist(), strict=True))
        length = _period(at)
        pairs = [(at[step], at[step + length]) for step in at if length and step + length in at]
        if length < _FEW or len(pairs) < _PAIRS or facts.run.steps < (min_passes + 1) * length:
            continue
        repeats = sum(one == other for one, other in pairs)
        is_one_each = len(set(at.values())) > min_share * len({step % length for step in at})
        if repeats >= min_share * len(pairs) and is_one_each:
            return _Passes(
                f"{repeats} of {len(pairs)} batches repeat after {length} steps",
                "sequential",
                length,
                (prints.first, prints.last),
                (INPUT_FINGERPRINT, model),
                by_loader=False,
            )
    return repeated_order.not_examined(
        "no training loader and no batches that repeat in the same order were seen"
    )


def _period(prints: dict[int, float]) -> int:
    """Return the least number of steps after which a batch comes again; 0 if none does."""
    last: dict[float, int] = {}
    least = 0
    for step, value in prints.items():
        if value in last and (not least or step - last[value] < least):
            least = step - last[value]
        last[value] = step
    return least


def _of_mixed_data(facts: Facts, passes: _Passes) -> Verdict:
    """Judge data without an order of their own, which lose little and fail by another cause."""
    measured = f"{passes.says}, without shuffling"
    if facts.run_outcome.bad:
        return repeated_order.normal(
            f"{measured}; neighbouring batches are not alike, so the order does not explain the"
            " failure"
        )
    if not passes.by_loader:
        return repeated_order.normal(f"{measured}; neighbouring batches are not alike")
    return repeated_order.finding(
        f"{measured}; neighbouring batches are not alike, so the effect may be small",
        severity=Severity.INFO,
        confidence=Confidence.HINT,
        onset=passes.span[0],
        evidence=(_evidence(passes),),
        fix="shuffle the training data: `DataLoader(..., shuffle=True)`",
        explains=(),
    )


def _of_ordered_data(
    facts: Facts, passes: _Passes, ordered: Evidence, verdict: Normal | NotExamined
) -> Verdict:
    """Judge a training that learned from data in their own order; buckets of lengths are common."""
    if ordered.signal is INPUT_TOKENS or not isinstance(verdict, Normal):
        return verdict
    return repeated_order.finding(
        f"{passes.says}, without shuffling; {ordered.says}: updates follow the order of the data,"
        f" and each pass ends with its last part; {facts.run_outcome.says}",
        severity=Severity.INFO,
        confidence=Confidence.HINT,
        onset=passes.span[0],
        evidence=(_evidence(passes), ordered),
        fix="shuffle the training data: `DataLoader(..., shuffle=True)`, or draw"
        " `torch.randperm(len(data))` in each epoch",
        explains=("erratic-validation",),
    )


def _evidence(passes: _Passes) -> Evidence:
    signal, owner = passes.evidence
    return Evidence(signal, passes.span, passes.says, owner)


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
    for signal, what in _ORDERED:
        for owner, series in facts.run[signal].items() if signal in facts.run else ():
            correlation = _neighbours(series)
            if correlation is not None and correlation > alike:
                return Evidence(
                    signal,
                    (series.first, series.last),
                    f"the {what} of neighbouring batches correlate by {correlation:.2f}",
                    owner,
                )
    return None


def _neighbours(series: Series) -> float | None:
    """Return the correlation of readings one step apart, or None where there are too few."""
    together = np.flatnonzero(np.diff(series.steps) == 1)
    if len(together) < _FEWEST:
        return None
    values = series.values.astype(np.float64)
    one, other = values[together], values[together + 1]
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.any() or not np.ptp(one[finite]) or not np.ptp(other[finite]):
        return None
    return float(np.corrcoef(one[finite], other[finite])[0, 1])
