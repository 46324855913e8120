"""Which numbers of a script are worth holding: those that a schedule moves, not what it measures.

A schedule moves a number in one direction, or sets it rarely. What a script measures goes up and
down, and a counter only counts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from holter.scripts.reruns.holding import HeldNumber
from holter.scripts.reruns.numbers import Place, ScriptNumber, Series

_MOST = 5  # numbers that are held, one at a time
_CHANGED = 0.02  # relative, from which on a number has changed
_FAR = 1.5  # times, by which a number that moves slowly has to move
_NEAR_ONE = 0.5  # from 1, within which a number may be a decay, a discount or a momentum
_RARELY = 4  # values of a number that is set rarely, at most
_LITTLE_ABOVE = 1.2  # 1: a factor up to here may be meant as a decay or a discount
_MOST_FACTORS = 2  # that are tried
_COUNTED = 6  # values of a number that grows by 1 each time, before it is set back
_BACK = 400  # steps before a failure that are looked at, at most
_ORDER = list(Place)
_IMPLIED = ("lr", "initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum")


@dataclass(frozen=True, slots=True)
class HoldableNumber:
    """A number that a script moves: its places, and from which step on it is held."""

    name: str  # and its value
    held: tuple[HeldNumber, ...]
    begins: int
    counts: bool = False  # it only counts: epochs, updates, rounds
    earlier: "HoldableNumber | None" = None  # the same at an earlier value


def earliest(onset: int) -> int:
    """Return the step from which on numbers are looked at, before a failure."""
    return max(onset // 2, onset - _BACK, 0)


def holdable(
    changed: Mapping[ScriptNumber, Series], first: int, onset: int, failing: int
) -> list[HoldableNumber]:
    """Return the numbers to hold; `first` is the first step of the window of the failure."""
    alike: dict[tuple[tuple[int, float], ...], list[ScriptNumber]] = {}
    for number, series in changed.items():
        until = sorted((step, value) for step, value in series.items() if step <= failing)
        if number.place == Place.OPTION and number.path[0] in _IMPLIED:
            continue
        if len(until) > 1 and _is_scheduled([value for _, value in until]):
            alike.setdefault(_levels(until), []).append(number)
    found: list[tuple[tuple[bool, bool, float], HoldableNumber]] = []
    for levels, places in alike.items():
        places.sort(key=lambda number: (_ORDER.index(Place(number.place)), len(number.path)))
        series = changed[places[0]]
        is_option = places[0].place == Place.OPTION
        last = series[max(step for step in series if step <= failing)]
        counts, earlier = _counts(series, failing), None
        for begins in reversed(_begins(series, first, onset, failing, is_option=is_option)):
            value = series[begins]
            held = tuple(HeldNumber(place, value) for place in places)
            name = f"{places[0].says}={_shown(value)}"
            earlier = HoldableNumber(name, held, begins, counts, earlier)
            rank = (counts, *_rank(levels, value, last, onset))
        if earlier is not None:
            found.append((rank, earlier))
    found.sort(key=lambda each: each[0])
    return [number for _, number in found[:_MOST]]


def set_back(
    changed: Mapping[ScriptNumber, Series], onset: int, failing: int
) -> list[HoldableNumber]:
    """Return counters that the script sets back where a failure begins, at what they had reached.

    An operation that has no value for the first number of a counter, as the correction of a moment
    has none for step 0, fails there.
    """
    alike: dict[tuple[tuple[int, float], ...], list[ScriptNumber]] = {}
    for number, series in changed.items():
        until = sorted((step, value) for step, value in series.items() if step <= failing)
        if len(until) > _COUNTED and _falls(until, onset):
            alike.setdefault(tuple(until[-_COUNTED:]), []).append(number)
    found = []
    for recent, places in alike.items():
        places.sort(key=lambda number: (_ORDER.index(Place(number.place)), len(number.path)))
        begins, reached = max(each for each in recent if each[0] < onset)
        held = tuple(HeldNumber(place, reached) for place in places)
        name = f"{places[0].says}={_shown(reached)}"
        found.append(HoldableNumber(name, held, begins))
    return found[:_MOST]


def factors(seen: Mapping[ScriptNumber, Series]) -> list[HoldableNumber]:
    """Return numbers that are a little above 1 all the time, to be put as far below it.

    What is multiplied by a discount or a decay above 1 in each step grows without bound.
    """
    alike: dict[float, list[ScriptNumber]] = {}
    begins: dict[float, int] = {}
    for number, series in seen.items():
        values = {*series.values()}
        value = min(values)
        is_factor = len(values) == 1 and 1 < value <= _LITTLE_ABOVE
        if is_factor and number.place not in (Place.OPTION, Place.RETURNED):
            alike.setdefault(value, []).append(number)
            begins[value] = min(begins.get(value, min(series)), *series)
    found = []
    for value, places in alike.items():
        places.sort(key=lambda number: (_ORDER.index(Place(number.place)), len(number.path)))
        held = tuple(HeldNumber(place, 1 / value) for place in places)
        name = f"{places[0].says}={_shown(1 / value)}"
        found.append(HoldableNumber(name, held, begins[value]))
    return found[:_MOST_FACTORS]


def _falls(until: list[tuple[int, float]], onset: int) -> bool:
    """Whether a number grew by 1 from step to step, and is set below all of that at the onset."""
    before = [value for step, value in until if step < onset]
    now = [value for step, value in until if step >= onset]
    if len(before) < _COUNTED or not now:
        return False
    counts = all(later - earlier == 1 for earlier, later in pairwise(before[-_COUNTED:]))
    return counts and now[0] < min(before)


def _levels(until: list[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """Return each change of a number, with its step: the same in all places of one number."""
    changes = [until[i] for i in range(1, len(until)) if until[i][1] != until[i - 1][1]]
    return tuple(changes) if len(changes) <= _RARELY else tuple(changes[-_RARELY:])


def _is_scheduled(values: list[float]) -> bool:
    if not all(map(math.isfinite, values)):
        return False
    steps = [later - earlier for earlier, later in pairwise(values)]
    moves = [step for step in steps if step]
    counts = len(moves) == len(steps) and len({*moves}) == 1 and float(moves[0]).is_integer()
    if not moves or (counts and len(steps) > 1):
        return False
    one_way = all(step > 0 for step in moves) or all(step < 0 for step in moves)
    return one_way or (len({*values}) <= _RARELY and len(moves) <= len(steps) // 4)


def _counts(series: Series, failing: int) -> bool:
    """Whether a number is whole, and whatever it moves by is 1."""
    values = [series[step] for step in sorted(series) if step <= failing]
    moves = {later - earlier for earlier, later in pairwise(values)} - {0.0}
    return moves == {1.0} and values[0].is_integer()


def _begins(series: Series, first: int, onset: int, failing: int, *, is_option: bool) -> list[int]:
    """Return the steps whose value may be held: late, if it is far from the last one, and early."""
    steps = sorted(step for step in series if step <= failing)
    last = series[steps[-1]]
    late = [step for step in steps if step >= first]
    rare = len({series[step] for step in steps}) <= _RARELY
    found: list[int] = []
    for begin, enough in ((late[0] if late else None, not is_option), (steps[0], True)):
        if begin is None or begin >= onset or begin in found or not enough:
            continue
        if _differ(series[begin], last, 1 + _CHANGED if rare or is_option else _FAR):
            found.append(begin)
    return found


def _differ(one: float, other: float, times: float) -> bool:
    """Whether two values are far apart: from 0, or from 1 if both are near it.

    A decay, a discount or a momentum acts by how far it is from 1.
    """
    return _distance(one, other) > math.log(times)


def _distance(one: float, other: float) -> float:
    """Return how many times farther from 0, or from 1, one of two values is; a logarithm."""
    near_one = all(abs(value - 1) < _NEAR_ONE for value in (one, other))
    from_one = _apart(one - 1, other - 1) if near_one else 0.0
    return max(_apart(one, other), from_one)


def _apart(one: float, other: float) -> float:
    if one == other:
        return 0.0
    return math.inf if one * other <= 0 else abs(math.log(one / other))


def _rank(
    levels: tuple[tuple[int, float], ...], value: float, last: float, onset: int
) -> tuple[bool, float]:
    """Order numbers: those that jump where the failure begins, then those that moved farthest."""
    jumps = any(abs(step - onset) <= 1 for step, _ in levels) and len(levels) < _RARELY
    return (not jumps, -_distance(value, last))


def _shown(value: float) -> str:
    return f"{value:.3g}"
