"""The optimizer state is reset repeatedly."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, OPTIMIZER_AGE, WEIGHT_REWRITTEN_FRACTION

Steps = npt.NDArray[np.int64]

_AROUND = 3  # losses before and after a reset
_ERRORS = 2  # standard errors of a rise at all resets
_FEWEST = 2  # resets at which the fraction of rewritten weights was recorded


@exception
def another_training(facts: Facts, owner: str, _: Series, resets: Steps, most: float) -> str | None:
    """The loss returns to its initial value at each reset: the next fold or model is trained."""
    around = _losses_around(facts, owner, resets)
    if around is None:
        return None
    first, pairs = around
    returns = sum(b < 0.9 * first and after > (first + b) / 2 for b, after in pairs)
    if returns <= most * len(resets):
        return None
    return (
        f"the optimizer's state was reset {len(resets)} times, {returns} of them with a loss back"
        f" near its start ({first:.3g})"
    )


@exception
def rewritten_weights(
    facts: Facts, owner: str, age: Series, resets: Steps, most: float
) -> str | None:
    """Weights are loaded at each reset: the next client, task or round is trained."""
    fractions = _rewritten(facts, owner, age)
    loaded = int((fractions > most).sum())
    if loaded <= most * len(fractions):
        return None
    return (
        f"the optimizer's state was reset {len(resets)} times; weights were loaded at {loaded} of"
        f" the {len(fractions)} resets that were sampled"
    )


@exception
def pruned_weights(facts: Facts, owner: str, age: Series, resets: Steps, most: float) -> str | None:
    """The script edits weights at each reset, as in pruning, which itself raises the loss."""
    fractions = _rewritten(facts, owner, age)
    edited = int((fractions > 0).sum())
    if facts.run_outcome.state is not OutcomeState.LEARNED or edited <= most * len(fractions):
        return None
    return (
        f"the optimizer's state was reset {len(resets)} times; weights were edited at {edited} of"
        f" the {len(fractions)} resets that were sampled, and the training learned"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(OPTIMIZER_AGE,),
    exceptions=(another_training, rewritten_weights, pruned_weights),
)
def reset_optimizer_state(
    facts: Facts,
    *,
    min_resets: Annotated[int, "resets of the state"] = 3,
    most: Annotated[float, "share of the resets at which an exception has to apply"] = 0.5,
    short: Annotated[int, "steps between resets, for which moments hardly exist"] = 30,
    rise: Annotated[float, "times the loss before a reset that the loss after it is"] = 1.1,
) -> Iterator[Verdict]:
    """The optimizer state is reset repeatedly.

    ## What it does
    Reads the step count in the state of an optimizer such as Adam, which must increase between
    readings. It reports a count that restarted several times: it fell to at most the steps since
    the last reading, or stays at 1. If the training learned and the loss does not rise at the
    resets, it is a hint, and harmless if the state lasts long enough in between.

    ## Why it matters
    Without its moments, Adam takes full-size steps in the direction of a single batch. A scheduler
    attached to the old optimizer no longer changes the learning rate.

    ## Example
    ```python
    for epoch in range(epochs): optimizer = Adam(model.parameters()); train_epoch()   # bad
    optimizer = Adam(model.parameters()); [train_epoch() for _ in range(epochs)]      # good
    ```

    ## What to do
    Create the optimizer once, before the loop over epochs. To change the learning rate, set it in
    `optimizer.param_groups` or use a scheduler.

    ## When it is wrong
    Multi-stage training may restart the optimizer on purpose, as in snapshot ensembles. One or two
    resets count as stages. A count that returns to an earlier value, as after loading a checkpoint,
    is not a reset.

    ## How to confirm
    - Print `id(optimizer)` once per epoch: it must not change.
    """
    examined = False
    for owner, age in facts.run[OPTIMIZER_AGE].items():
        if len(age) < 2:
            continue
        examined = True
        resets = _resets(age)
        if len(resets) < min_resets:
            yield reset_optimizer_state.clear(
                f"the state{of(owner)} has seen {age.values[-1]:.0f} steps and was reset"
                f" {len(resets)} times"
            )
            continue
        yield reset_optimizer_state.excused(facts, owner, age, resets, most) or _judged(
            facts, owner, age, resets, short=short, rise=rise
        )
    if not examined:
        yield reset_optimizer_state.not_examined("the optimizer's step count was recorded once")


def _rewritten(facts: Facts, owner: str, age: Series) -> npt.NDArray[np.float64]:
    """Return the fractions of parameters that the script wrote to at resets; none if too few."""
    if WEIGHT_REWRITTEN_FRACTION not in facts.run:
        return np.empty(0)
    written = facts.run[WEIGHT_REWRITTEN_FRACTION].get(owner)
    if written is None:
        return np.empty(0)
    fresh = age.steps[(age.values <= 1) & (age.steps > age.first)]
    fractions = written.values[np.isin(written.steps, fresh)].astype(np.float64)
    return fractions if len(fractions) >= _FEWEST else np.empty(0)


def _losses(facts: Facts, owner: str) -> Series | None:
    """Return the losses of the training that an optimizer belongs to, or None if unknown."""
    if LOSS not in facts.run:
        return None
    losses = {name: loss for name, loss in facts.run[LOSS].items() if len(loss) > 1}
    return losses.get(owner) or (next(iter(losses.values())) if len(losses) == 1 else None)


def _losses_around(
    facts: Facts, owner: str, resets: Steps
) -> tuple[float, list[tuple[float, float]]] | None:
    """Return the first loss, and those before and after each reset; None if none is known."""
    loss = _losses(facts, owner)
    if loss is None:
        return None
    pairs = [
        _around(loss, min(max(at, 1), len(loss) - 1)) for at in loss.steps.searchsorted(resets)
    ]
    return float(np.median(loss.values[:_AROUND])), pairs


def _around(loss: Series, index: int) -> tuple[float, float]:
    """Return the levels of the losses before and from an index on."""
    before = float(np.median(loss.values[max(index - _AROUND, 0) : index]))
    return before, float(np.median(loss.values[index : index + _AROUND]))


def _does_damage(facts: Facts, owner: str, resets: Steps, rise: float) -> bool:
    """Whether the training failed, or its loss rises at most of the resets; True if unknown."""
    outcome, around = facts.run_outcome, _losses_around(facts, owner, resets)
    loss = _losses(facts, owner)
    if outcome.state is not OutcomeState.LEARNED or around is None or loss is None:
        return True
    at_resets = _ratios(around[1])
    elsewhere = _ratios([_around(loss, n) for n in range(_AROUND, len(loss) - _AROUND)])
    if not len(elsewhere) or not len(at_resets):
        return True
    # Batches differ: the loss rises by as much at many other steps.
    error = float(elsewhere.std()) / np.sqrt(len(at_resets))
    mean = float(at_resets.mean() - np.median(elsewhere))
    return bool(np.median(at_resets) > np.log(rise) and mean > _ERRORS * error)


def _ratios(pairs: list[tuple[float, float]]) -> npt.NDArray[np.float64]:
    """Return the logarithms of the changes between positive losses."""
    known = [pair for pair in pairs if np.isfinite(pair).all() and min(pair) > 0]
    return np.diff(np.log(np.array(known, np.float64).reshape(-1, 2)), axis=1)[:, 0]


def _resets(age: Series) -> Steps:
    """Return the steps at which the count restarted, as it counts the steps since then.

    A count that stays the same belongs to a parameter that is no longer trained, unless it is 1.
    """
    rise, count, passed = np.diff(age.values), age.values[1:], np.diff(age.steps)
    restarted = ((rise < 0) & (count <= passed)) | ((rise == 0) & (count <= 1))
    begun = age.steps[1:] - np.maximum(np.nan_to_num(count).astype(np.int64) - 1, 0)
    return np.compress(restarted, begun)


def _judged(
    facts: Facts, owner: str, age: Series, resets: Steps, *, short: int, rise: float
) -> Verdict:
    life = float(np.median(np.diff(resets)))
    does_damage = _does_damage(facts, owner, resets, rise)
    measured = (
        f"the optimizer's state{of(owner)} was reset {len(resets)} times, about every {life:.0f}"
        " steps"
    )
    if not does_damage and life >= short:
        return reset_optimizer_state.harmless(f"{measured}; the loss does not rise there")
    steps = ", ".join(str(step) for step in resets[:4]) + (", ..." if len(resets) > 4 else "")
    return reset_optimizer_state.finding(
        f"{measured}: it never saw more than {np.nanmax(age.values):.0f} steps of"
        f" {facts.run.steps}",
        confidence=Confidence.CERTAIN if does_damage else Confidence.HINT,
        onset=int(resets[0]),
        evidence=(
            Evidence(
                OPTIMIZER_AGE,
                (age.first, age.last),
                f"its step count restarted at steps {steps}",
                owner,
            ),
        ),
        fix="create the optimizer once, before the loop; change its learning rate with"
        ' `optimizer.param_groups[0]["lr"] = ...`',
    )
