"""The optimizer loses its state again and again."""

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
_RISE = 1.1  # times the loss before
_FEWEST = 2  # resets at which the fraction of rewritten weights was recorded


@exception
def another_training(facts: Facts, owner: str, _: Series, resets: Steps, most: float) -> str | None:
    """The loss returns to its start at each reset: the next fold or model is trained."""
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
    if WEIGHT_REWRITTEN_FRACTION not in facts.run:
        return None
    written = facts.run[WEIGHT_REWRITTEN_FRACTION].get(owner)
    if written is None:
        return None
    fresh = age.steps[(age.values <= 1) & (age.steps > age.first)]
    fractions = written.values[np.isin(written.steps, fresh)]
    loaded = int((fractions > most).sum())
    if len(fractions) < _FEWEST or loaded <= most * len(fractions):
        return None
    return (
        f"the optimizer's state was reset {len(resets)} times; weights were loaded at {loaded} of"
        f" the {len(fractions)} resets that were sampled"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(OPTIMIZER_AGE,),
    exceptions=(another_training, rewritten_weights),
)
def reset_optimizer_state(
    facts: Facts,
    *,
    min_resets: Annotated[int, "resets of the state"] = 3,
    most: Annotated[float, "share of the resets at which an exception has to apply"] = 0.5,
) -> Iterator[Verdict]:
    """The optimizer loses its state again and again.

    ## What it does
    Reads the number of steps that the state of an optimizer such as Adam has seen, which has to
    rise between two readings. It reports if the count restarted several times: it fell to at most
    the steps since the last reading, or stays at 1. Where the training learned and the loss does
    not rise at the resets it is a hint.

    ## Why it matters
    Adam without its moments takes steps of full length in the direction of a single batch. A
    scheduler that holds the old optimizer no longer changes the learning rate.

    ## Example
    ```python
    for epoch in range(epochs): optimizer = Adam(model.parameters()); train_epoch()   # bad
    optimizer = Adam(model.parameters()); [train_epoch() for _ in range(epochs)]      # good
    ```

    ## What to do
    Create the optimizer once, before the loop over epochs. To change the learning rate, set it in
    `optimizer.param_groups` or use a scheduler.

    ## When it is wrong
    Training in many stages may restart the optimizer on purpose and keep the weights, as with
    snapshots of a cycle. One or two resets count as stages. A count that falls back to an earlier
    value, as after loading a checkpoint, is no reset.

    ## How to confirm
    - Print `id(optimizer)` once per epoch: it has to stay the same.
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
        yield reset_optimizer_state.excused(facts, owner, age, resets, most) or _finding(
            facts, owner, age, resets
        )
    if not examined:
        yield reset_optimizer_state.not_examined("the optimizer's step count was recorded once")


def _losses_around(
    facts: Facts, owner: str, resets: Steps
) -> tuple[float, list[tuple[float, float]]] | None:
    """Return the first loss, and those before and after each reset; None if none is known."""
    if LOSS not in facts.run:
        return None
    losses = {name: loss for name, loss in facts.run[LOSS].items() if len(loss) > 1}
    loss = losses.get(owner) or (next(iter(losses.values())) if len(losses) == 1 else None)
    if loss is None:
        return None
    pairs = []
    for step in resets:
        index = min(max(int(np.searchsorted(loss.steps, step)), 1), len(loss) - 1)
        before = float(np.median(loss.values[max(index - _AROUND, 0) : index]))
        pairs.append((before, float(np.median(loss.values[index : index + _AROUND]))))
    return float(np.median(loss.values[:_AROUND])), pairs


def _does_damage(facts: Facts, owner: str, resets: Steps) -> bool:
    """Whether the training failed, or its loss rises at most of the resets; True if unknown."""
    outcome, around = facts.run_outcome, _losses_around(facts, owner, resets)
    if outcome.state is not OutcomeState.LEARNED or around is None:
        return True
    return bool(np.mean([after > _RISE * before for before, after in around[1]]) > 0.5)


def _resets(age: Series) -> Steps:
    """Return the steps at which the count had restarted since the previous reading.

    A count that stays the same belongs to a parameter that is no longer trained, unless it is 1.
    """
    rise, count, passed = np.diff(age.values), age.values[1:], np.diff(age.steps)
    restarted = ((rise < 0) & (count <= passed)) | ((rise == 0) & (count <= 1))
    return np.compress(restarted, age.steps[1:])


def _finding(facts: Facts, owner: str, age: Series, resets: Steps) -> Verdict:
    every = f", about every {np.median(np.diff(resets)):.0f} steps" if len(resets) > 1 else ""
    steps = ", ".join(str(step) for step in resets[:4]) + (", ..." if len(resets) > 4 else "")
    return reset_optimizer_state.finding(
        f"the optimizer's state{of(owner)} was reset {len(resets)} times{every}: it never saw more"
        f" than {np.nanmax(age.values):.0f} steps of {facts.run.steps}",
        confidence=Confidence.CERTAIN if _does_damage(facts, owner, resets) else Confidence.HINT,
        onset=int(resets[0]),
        evidence=(
            Evidence(
                OPTIMIZER_AGE,
                (age.first, age.last),
                f"its step count restarted at steps {steps}",
                owner,
            ),
        ),
        fix="create the optimizer once, before the loop; change its rate with"
        ' `optimizer.param_groups[0]["lr"] = ...`',
    )
