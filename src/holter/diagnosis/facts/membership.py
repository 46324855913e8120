"""Who trains what: the sets that a parameter belongs to, and the gradients it got."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.windows import windows
from holter.record.signals import (
    GRAD_NORM,
    GRAPH_LEAVES,
    GRAPH_LOOSE_LEAVES,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
    WEIGHT_TOTAL_NORM,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts


@dataclass(frozen=True, slots=True)
class Parameter:
    """How one parameter stands at the end of the run, and since which step it stands so."""

    name: str
    trainable: bool
    in_model: bool
    optimizer: int  # -1: held by none
    since: int
    outside_since: int = 0  # of one in no model: the step


def parameters(facts: "Facts") -> list[Parameter]:
    """All known parameters; one of which nothing else is said is trainable and in the model."""
    trainable = latest(facts, PARAMETER_TRAINABLE)
    in_model = latest(facts, PARAMETER_IN_MODEL)
    known = []
    for name, (optimizer, held_since) in latest(facts, PARAMETER_OPTIMIZER).items():
        is_trainable, trainable_since = trainable.get(name, (1, 0))
        is_in_model, in_model_since = in_model.get(name, (1, 0))
        since = max(held_since, trainable_since, in_model_since)
        known.append(
            Parameter(
                name,
                is_trainable > 0,
                is_in_model > 0,
                optimizer,
                since,
                0 if is_in_model else in_model_since,
            )
        )
    return known


def latest(facts: "Facts", signal: Signal) -> dict[str, tuple[int, int]]:
    """The last value of a rare signal by owner, and the first step from which on it held."""
    last: dict[str, tuple[int, int]] = {}
    if signal not in facts.run:
        return last
    rows = facts.run[signal].rows()
    for step, values, present in zip(rows.steps.tolist(), rows.values, rows.present, strict=True):
        for column in np.flatnonzero(present).tolist():
            owner, value = rows.owners[column], int(values[column])
            if owner not in last or last[owner][0] != value:
                last[owner] = value, step
    return last


def by_optimizer(held: Iterable[Parameter]) -> dict[int, list[Parameter]]:
    """Parameters by the optimizer that holds them; those that none holds are left out."""
    groups: dict[int, list[Parameter]] = {}
    for each in held:
        if each.optimizer >= 0:
            groups.setdefault(each.optimizer, []).append(each)
    return dict(sorted(groups.items()))


def all_step(facts: "Facts", optimizers: int) -> bool:
    """Whether each of so many optimizers was seen to step.

    One that is made for a later phase holds parameters without gradients, and is no fault. A lone
    optimizer steps wherever a step was recorded.
    """
    if optimizers == 1:
        return facts.run.steps > 0
    tables = facts.run[WEIGHT_TOTAL_NORM].values() if WEIGHT_TOTAL_NORM in facts.run else ()
    return sum(len(series) > 0 for series in tables) >= optimizers


def ends_outside_parameters(facts: "Facts") -> bool:
    """Whether the graph of the loss was read, and ended at no parameter each time."""
    if GRAPH_LEAVES not in facts.run or GRAPH_LOOSE_LEAVES not in facts.run:
        return False
    leaves, loose = facts.run[GRAPH_LEAVES].get(""), facts.run[GRAPH_LOOSE_LEAVES].get("")
    if leaves is None or loose is None or not len(leaves) or len(leaves) != len(loose):
        return False
    return bool(loose.values.min() >= 1 and (leaves.values == loose.values).all())


def nonzero_gradients(facts: "Facts", since: Mapping[str, int], *, enough: int) -> dict[str, int]:
    """At how many steps from `since` on each parameter got a gradient that was not zero.

    Counting ends when all have `enough`. A NaN is not zero.
    """
    counts = dict.fromkeys(since, 0)
    for rows in windows(facts, GRAD_NORM):
        columns = [column for column, owner in enumerate(rows.owners) if owner in since]
        names = [rows.owners[column] for column in columns]
        begin = np.array([since[name] for name in names], np.int64)
        nonzero = rows.present[:, columns] & (rows.values[:, columns] != 0)
        nonzero &= rows.steps[:, None] >= begin
        for name, count in zip(names, nonzero.sum(axis=0), strict=True):
            counts[name] += int(count)
        if all(count >= enough for count in counts.values()):
            break
    return counts


def was_replaced(facts: "Facts", parameter: Parameter) -> bool:
    """Whether the model that held a parameter was replaced by another during the run."""
    held = facts.run[PARAMETER_IN_MODEL].get(parameter.name)
    return not parameter.in_model and held is not None and bool(held.values.max() > 0)


def keeps_gradient(facts: "Facts", parameter: Parameter) -> bool:
    """Whether the gradient of a parameter has one norm since it is in no model: it is left over."""
    norms = facts.run[GRAD_NORM].get(parameter.name) if GRAD_NORM in facts.run else None
    if norms is None:
        return True
    later = norms.values[norms.steps > parameter.outside_since]
    return len(later) == 0 or bool((later == later[0]).all())


def covering(names: Iterable[str], others: Iterable[str]) -> list[str]:
    """The shallowest modules that hold `names` and not `others`: `encoder.*`, not its weights."""
    taken = {prefix for other in others for prefix in _prefixes(other)}
    found: dict[str, None] = {}  # an ordered set
    for name in names:
        module = next((prefix for prefix in _prefixes(name) if prefix not in taken), name)
        found[name if module == name else f"{module}.*"] = None
    return list(found)


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))
