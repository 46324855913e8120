"""The validation loss stays bit for bit the same while the model trains."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings, trained_functions
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.streaks import trailing
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.evaluations import parts_of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, UPDATE_RATIO, VAL_LOSS, WEIGHT_TOTAL_NORM


@exception
def reference_model(facts: Facts, owner: str, loss: Series) -> str | None:
    """Another function is constant while the training function changes: it measures a baseline."""
    functions = trained_functions(facts)
    losses = facts.run[VAL_LOSS]
    own = [
        series for name, series in losses.items() if parts_of(name)[0] in functions and len(series)
    ]
    if parts_of(owner)[0] in functions or not any(np.ptp(series.values) > 0 for series in own):
        return None
    return (
        f"the validation loss{of(owner)} stays at {loss.values[-1]:.3g}, but training uses another"
        " function, whose validation loss changes"
    )


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(LOSS, VAL_LOSS),
    exceptions=(reference_model,),
)
def constant_validation(
    facts: Facts,
    *,
    min_passes: Annotated[int, "equal validation losses needed"] = 4,
    min_movement: Annotated[float, "relative change of the weights that shows in a loss"] = 1e-4,
    min_fall: Annotated[float, "fall of the training loss that shows it instead"] = 0.1,
    max_remaining: Annotated[float, "share of the initial loss that is fully learned"] = 1e-5,
) -> Iterator[Verdict]:
    """The validation loss stays bit for bit the same while the model trains.

    ## What it does
    Reports validation losses that are bit for bit equal on the last passes while the weights move,
    or, without readings of them, while the training loss falls. It is a hint if the values were
    passed to `log()` and changed before: they may be the best loss so far; or if another call of
    the same function changes in the same evaluations: this one may measure a fixed baseline.

    ## Why it matters
    The same number means the same weights on the same data: the model that is validated is not the
    one that trains. It is a copy made before training, another model, a checkpoint loaded each
    time, or a metric computed once. Early stopping then stops at an arbitrary step.

    ## Example
    ```python
    val_loss = evaluate(initial_model)   # bad
    val_loss = evaluate(model)           # good
    ```

    ## What to do
    Pass the model that the optimizer trains to the validation code: no `copy.deepcopy(model)` or
    `load_state_dict` from before training, no exported or traced copy, no averaged weights that are
    never updated.

    ## When it is wrong
    A frozen reference, such as a teacher or the best checkpoint so far, that is evaluated next to
    the model on purpose. A model whose output no longer depends on its weights, for example because
    all units died.

    ## How to confirm
    - Print `id(model)` and the norm of one weight in the training loop and in validation.
    - Set one weight of the model to 0 before a validation: the loss must change.
    """
    losses = {owner: loss for owner, loss in facts.run[VAL_LOSS].items() if len(loss)}
    if not losses:
        yield constant_validation.not_examined("no validation loss was read")
    enough = {owner: loss for owner, loss in losses.items() if len(loss) >= min_passes}
    for owner, loss in ({} if enough else losses).items():
        yield constant_validation.not_examined(
            f"{len(loss)} of the {min_passes} validation passes needed{of(owner)}"
        )
    for owner, loss in enough.items():
        same = trailing(loss.values == loss.values[-1])
        if same < min_passes:
            yield constant_validation.clear(
                f"the validation loss{of(owner)} took {len(np.unique(loss.values))} values in"
                f" {len(loss)} passes"
            )
        else:
            yield _judge(
                facts,
                owner,
                loss,
                same,
                min_movement=min_movement,
                min_fall=min_fall,
                max_remaining=max_remaining,
            )


def _judge(
    facts: Facts,
    owner: str,
    loss: Series,
    same: int,
    *,
    min_movement: float,
    min_fall: float,
    max_remaining: float,
) -> Verdict:
    value = float(loss.values[-1])
    throughout = same == len(loss)
    first, last = int(loss.steps[-same]), loss.last
    initial, level = _training_levels(facts, first, last)
    movement = _movement(facts, first, last)
    if movement is not None and movement < min_movement:
        return constant_validation.clear(
            f"the weights do not change either: they moved by {movement:.1g} of their norm in"
            f" {same} passes"
        )
    if abs(value) < max_remaining * abs(initial):
        return constant_validation.harmless(
            f"the validation loss{of(owner)} is {value:.2g} on {same} passes: nothing is left to"
            " learn"
        )
    if movement is None and initial - level <= min_fall * abs(initial):
        return constant_validation.not_examined(
            f"the validation loss{of(owner)} is the same on {same} passes, but it was not recorded"
            " whether the weights moved"
        )
    excuse = constant_validation.excused(facts, owner, loss)
    if excuse is not None:
        return excuse
    beside = _changes_beside(facts, owner, loss)
    only = "; that of another call in the same evaluation changes" if beside else ""
    return constant_validation.finding(
        f"the validation loss{of(owner)} is {value:.3g}, bit for bit the same, on"
        f" {'all' if throughout else 'the last'} {same} passes (steps {first} to {last}){only}",
        confidence=Confidence.HINT
        if beside
        else _confidence(owner, movement, throughout=throughout),
        severity=Severity.WARNING if beside else None,
        onset=first,
        evidence=(
            Evidence(VAL_LOSS, (first, last), f"{value:.3g} on each of {same} passes", owner),
            Evidence(LOSS, (first, last), f"{initial:.3g} initially, {level:.3g} at the end"),
            *_weight_evidence(facts, first, last, movement),
        ),
        fix="validate the model that the optimizer trains: `evaluate(model)`, not a copy or an"
        " earlier checkpoint",
    )


def _changes_beside(facts: Facts, owner: str, loss: Series) -> bool:
    """Whether the same function changes in the same evaluations: this may be a fixed baseline."""
    function = parts_of(owner)[0]
    return any(
        np.ptp(series.values) > 0 and bool(np.isin(loss.steps, series.steps).all())
        for name, series in facts.run[VAL_LOSS].items()
        if name != owner and parts_of(name)[0] == function and len(series)
    )


def _confidence(owner: str, movement: float | None, *, throughout: bool) -> Confidence:
    if throughout:
        return Confidence.LIKELY if movement is None else Confidence.CERTAIN
    # A logged value that stays after others may be the best loss so far.
    return Confidence.LIKELY if owner else Confidence.HINT


def _training_levels(facts: Facts, first: int, last: int) -> tuple[float, float]:
    """Return the initial training loss, and its level over the last third of these steps."""
    owner = next(iter(facts.run[LOSS]))
    values = readings(facts, LOSS, owner)
    late = readings(facts, LOSS, owner, last - (last - first) // 3)
    if not len(values):
        return 0.0, 0.0
    return float(np.median(values[:5])), midmean(late) if len(late) else float(values[-1])


def _movement(facts: Facts, first: int, last: int) -> float | None:
    """Return how far the weights moved between two steps, relative to their norm, or None."""
    if UPDATE_RATIO in facts.run:
        rows = facts.run[UPDATE_RATIO].rows(first + 1, last)
        ratios = rows.values[rows.present & np.isfinite(rows.values)]
        if len(ratios):  # updates in random directions add up by their squares
            return float(np.percentile(ratios, 75) * np.sqrt(last - first))
    movements = []
    for series in facts.run[WEIGHT_TOTAL_NORM].values() if WEIGHT_TOTAL_NORM in facts.run else ():
        norms = series.values[(series.steps >= first) & (series.steps <= last)]
        if len(norms) > 1 and np.isfinite(norms).all() and norms.max() > 0:
            movements.append(float(np.ptp(norms) / norms.max()))
    return max(movements, default=None)


def _weight_evidence(
    facts: Facts, first: int, last: int, movement: float | None
) -> Iterator[Evidence]:
    if movement is not None:
        signal = UPDATE_RATIO if UPDATE_RATIO in facts.run else WEIGHT_TOTAL_NORM
        owner = next(iter(facts.run[signal]))
        says = f"the weights moved by about {movement:.1g} of their norm"
        yield Evidence(signal, (first, last), says, owner)
