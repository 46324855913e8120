"""Training repeats the same few batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.rule import exception, rule
from holter.record import Series
from holter.record.events import LoaderSeen
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATA_BATCHES,
    INPUT_FINGERPRINT,
    TARGET_BATCH_ENTROPY,
    TARGET_COUNT,
    TARGET_MAX,
    TARGET_MIN,
    VAL_INPUT_FINGERPRINT,
)

_OF_TARGETS = (TARGET_BATCH_ENTROPY, TARGET_MIN, TARGET_MAX)  # what differs between batches


@dataclass(frozen=True, slots=True)
class Loader:
    """The loader that training reads from."""

    batches: int
    shuffled: bool
    per_step: int  # batches that a step takes

    def expected(self, prints: Series) -> int:
        """Return how many different batches plain passes show at the steps of these readings.

        Sampled steps are evenly spaced: without shuffling they may meet the same few batches.
        """
        period = max(self.batches // self.per_step, 1)
        if self.shuffled:
            return min(len(prints), period)
        return min(len(np.unique(prints.steps % length)) for length in (period, period + 1))


@exception
def changing_targets(measured: str, batches: int, targets: int | None) -> str | None:
    """The input is constant by design, such as a whole graph, and each step has other targets."""
    if targets is None or targets <= batches:
        return None
    return f"{measured}, with {targets} different sets of targets"


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(INPUT_FINGERPRINT,),
    exceptions=(changing_targets,),
)
def repeated_batches(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 20,
    few: Annotated[float, "share of the expected batches that is reported"] = 0.1,
    min_expected: Annotated[int, "different batches that a loader must have shown"] = 3,
    min_read: Annotated[float, "share of the steps that read from the loader"] = 0.5,
    min_held_out: Annotated[float, "validation targets over those of training, no loader"] = 2.0,
) -> Iterator[Verdict]:
    """Training repeats the same few batches.

    ## What it does
    Counts distinct fingerprints of the batches that the model receives, and reports far fewer than
    full passes over the loader would show; without a loader, batches that hold fewer targets in
    total than a validation pass, if the model overfits. It is certain if targets repeat with the
    inputs, and a hint if the targets are unknown.

    ## Why it matters
    The model memorises a few batches and never sees the rest of the data, while the training loss
    looks excellent.

    ## Example
    ```python
    x, y = next(iter(loader))   # bad
    for x, y in loader: ...     # good
    ```

    ## What to do
    Iterate over the loader: `for x, y in loader`. `next(iter(loader))` inside the loop restarts it
    at every step; an index or offset that is not advanced has the same effect.

    ## When it is wrong
    A model that receives the same tensor at every step by design and has a hand-written loss, whose
    targets are unknown. Overfitting one batch as a test, and full-batch training with a larger
    validation set, look the same without a loader.

    ## How to confirm
    - Print `x.sum()` for ten steps: different batches have different sums.
    """
    tables = dict(facts.run[INPUT_FINGERPRINT].items())
    finite = {model: _finite(prints) for model, prints in tables.items()}
    examined = {model: prints for model, prints in finite.items() if len(prints) >= min_steps}
    most = max((len(prints) for prints in tables.values()), default=0)
    if not examined:
        yield repeated_batches.not_examined(
            f"{most} of the {min_steps} steps needed" if most < min_steps else "no finite input"
        )
        return
    # Of several models, one may be given the same input at every step by design.
    model = max(examined, key=lambda name: len(np.unique(examined[name].values)))
    prints = examined[model]
    batches = len(np.unique(prints.values))
    loader = _loader(facts, min_read * most)
    if loader is None:
        if batches > max(few * len(prints), 1):
            yield repeated_batches.clear(
                f"{model} receives {_batches(batches)} on {len(prints)} sampled steps"
            )
        else:
            yield _without_loader(facts, model, prints, min_held_out)
        return
    expected = loader.expected(prints)
    measured = (
        f"{model} receives {_batches(batches)} on {len(prints)} sampled steps; its loader has"
        f" {loader.batches}"
    )
    if expected < min_expected:
        yield repeated_batches.not_examined(f"{measured}, of which these steps show {expected}")
        return
    if batches > max(few * expected, 1):
        yield repeated_batches.clear(measured)
        return
    targets = _different_targets(facts, prints)
    excuse = repeated_batches.excused(measured, batches, targets)
    if excuse is not None:
        yield excuse
        return
    yield repeated_batches.finding(
        measured,
        confidence=Confidence.HINT if targets is None else Confidence.CERTAIN,
        onset=prints.first,
        evidence=(
            Evidence(
                INPUT_FINGERPRINT,
                (prints.first, prints.last),
                f"{batches} different on {len(prints)} steps; {expected} expected",
                model,
            ),
        ),
        fix="iterate over the loader, `for x, y in loader`, instead of restarting it",
    )


def _without_loader(facts: Facts, model: str, prints: Series, min_held_out: float) -> Verdict:
    """Judge batches that the script creates itself; their expected number is unknown.

    All data at once are one batch too, but they are seldom fewer than those of a validation pass.
    """
    batches = len(np.unique(prints.values))
    seen, held_out = _targets_of(facts, prints, batches), facts.measured_validation
    if seen is None or isinstance(held_out, str):
        return repeated_batches.not_examined("most steps read from no loader of known length")
    measured = (
        f"{model} receives {_batches(batches)} on {len(prints)} sampled steps, {seen:.0f} targets"
        f" in total; a validation pass has {held_out.last.targets}"
    )
    targets = _different_targets(facts, prints)
    excuse = repeated_batches.excused(measured, batches, targets)
    if excuse is not None:
        return excuse
    if held_out.last.targets < min_held_out * seen or _validates_on(facts, model, prints):
        return repeated_batches.not_examined(f"{measured}: they may be all of the data")
    outcome = facts.run_outcome
    if not outcome.bad and outcome.state is not OutcomeState.OVERFITS:
        return repeated_batches.harmless(f"{measured}, but {outcome.says}")
    return repeated_batches.finding(
        f"{measured}; {outcome.says}",
        confidence=Confidence.HINT if targets is None else Confidence.LIKELY,
        onset=prints.first,
        evidence=(
            Evidence(
                INPUT_FINGERPRINT,
                (prints.first, prints.last),
                f"{batches} different on {len(prints)} steps",
                model,
            ),
            outcome.evidence,
        ),
        fix="draw the indices of a batch at random, or advance its offset at every step",
    )


def _targets_of(facts: Facts, prints: Series, batches: int) -> float | None:
    """Return how many targets that many batches hold, or None if they were not counted."""
    if TARGET_COUNT not in facts.run or facts.loss_function is None:
        return None
    series = facts.run[TARGET_COUNT].get(facts.loss_function)
    if series is None:
        return None
    counts = series.values[np.isin(series.steps, prints.steps)]
    return batches * float(np.median(counts)) if len(counts) else None


def _validates_on(facts: Facts, model: str, prints: Series) -> bool:
    """Whether the validation is given what training is, such as a whole graph."""
    given = (
        facts.run[VAL_INPUT_FINGERPRINT].get(model) if VAL_INPUT_FINGERPRINT in facts.run else None
    )
    return given is not None and bool(np.isin(given.values, prints.values).all())


def _batches(count: int) -> str:
    return f"{count} different batch{'es' * (count != 1)}"


def _loader(facts: Facts, min_steps: float) -> Loader | None:
    """Return the loader that most steps read from, or None if it is read on fewer steps."""
    reads = dict(facts.run[DATA_BATCHES].items()) if DATA_BATCHES in facts.run else {}
    used = max(reads, key=lambda name: len(reads[name]), default=None)
    if used is None or len(reads[used]) < min_steps:
        return None
    for event in facts.run.events_of(LoaderSeen):
        if event.what.loader == used and event.what.batches is not None:
            per_step = max(int(np.median(reads[used].values)), 1)
            return Loader(event.what.batches, event.what.shuffled, per_step)
    return None


def _finite(series: Series) -> Series:
    kept = np.isfinite(series.values)
    return Series(series.steps[kept], series.values[kept])


def _different_targets(facts: Facts, prints: Series) -> int | None:
    """Return a lower bound on the different targets at these steps, or None if unknown.

    Readings of zeros and ones only, as of batches of one class or of yes and no, mean nothing.
    """
    counts = [
        len(
            np.unique(
                series.values[np.isin(series.steps, prints.steps) & np.isfinite(series.values)]
            )
        )
        for signal in _OF_TARGETS
        if signal in facts.run
        for series in facts.run[signal].values()
        if not np.isin(np.nan_to_num(series.values), (0, 1)).all()
    ]
    return max(counts, default=None)
