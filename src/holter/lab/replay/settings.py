"""Numbers that a script changes: a temperature, a loss weight, the momentum of its optimizer."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from torch import Tensor

from holter.lab.replay.window import FailureWindow, WindowEdit
from holter.lab.setup import Batch, Setup
from holter.record.trials import TrialKind, TrialName
from holter.watching.blackbox.capture import Step

_MOST = 4  # numbers that are held, one at a time
_SEVERAL = 2  # steps that fail on older weights too: not a single batch
_COUNTED = 3  # steps in which a number that grows by 1 each time counts as a counter


def held_settings(window: FailureWindow) -> Iterator[tuple[TrialName, WindowEdit]]:
    """Yield each number that has changed in the window, as a trial, and the edit that holds it.

    A counter may pick the data of a step: it is held only where several batches fail.
    """
    failing = window.at(window.failing)
    steps = [step for step in window.like(failing) if step.step <= failing.step]
    if len(steps) < _COUNTED:
        return
    early, late = (_given(window.batches(step)) for step in (steps[0], failing))
    recent = [_given(window.batches(step)) for step in steps[-_COUNTED:]]
    found = 0
    for key, value in early.items():
        if key not in late or not _differ(value, late[key]) or found == _MOST:
            continue
        counts = _counts([each.get(key) for each in recent])
        if counts and len(window.bad) < _SEVERAL:
            continue
        found += 1
        kind = TrialKind.COUNTER_HELD if counts else TrialKind.HELD
        yield TrialName(kind, f"{''.join(key.split())}={_shown(value)}"), _holding(key, value)


def held_options(window: FailureWindow) -> Iterator[tuple[TrialName, WindowEdit]]:
    """Yield each option of the optimizers, besides the learning rate, that was changed likewise."""
    failing = window.at(window.failing)
    first = window.like(failing)[0]
    keys = {
        key
        for early, late in _groups(first, failing)
        for key, value in early.items()
        if key in late and value != late[key]
    }
    for key in sorted(keys)[:_MOST]:
        values = [early.get(key) for early, _ in _groups(first, failing)]
        shown = next(_listed(value) for value in values if value is not None)
        yield (
            TrialName(TrialKind.HELD, f"{key}={shown}"),
            WindowEdit(before=dict.fromkeys(_steps(window), _setting(key, first))),
        )


def _steps(window: FailureWindow) -> list[int]:
    return [step.step for step in window.steps]


def _groups(first: Step, failing: Step) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the options of each parameter group in two steps."""
    for early, late in zip(first.settings, failing.settings, strict=False):
        yield from zip(early, late, strict=False)


def _setting(key: str, step: Step) -> Callable[[Setup], None]:
    """Return what gives an option the values that it had in a step."""

    def before(setup: Setup) -> None:
        for optimizer, settings in zip(setup.optimizers, step.settings, strict=False):
            for group, numbers in zip(optimizer.param_groups, settings, strict=False):
                if key in numbers and not isinstance(group.get(key), Tensor):
                    value = numbers[key]
                    group[key] = tuple(value) if isinstance(value, list) else value

    return before


def _listed(value: Any) -> str:
    parts = value if isinstance(value, list | tuple) else (value,)
    return ",".join(_shown(part) for part in parts)


def _given(batches: list[Batch]) -> dict[str, Any]:
    """Return the numbers among what a step is given, by name."""
    first = batches[0] if batches else None
    if not isinstance(first, Mapping):
        return {}
    return {str(key): value for key, value in first.items() if _is_number(value)}


def _is_number(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1 and not value.requires_grad and not value.is_complex()
    return isinstance(value, int | float)


def _differ(one: Any, other: Any) -> bool:
    return bool(float(one) != float(other))


def _counts(values: list[Any]) -> bool:
    """Whether integers grow by 1 from step to step."""
    return all(
        isinstance(one, int) and isinstance(other, int) and other - one == 1
        for one, other in pairwise(values)
    )


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, bool) else f"{float(value):.3g}"


def _holding(key: str, value: Any) -> WindowEdit:
    def batches(_: int, own: list[Batch]) -> list[Batch]:
        return [
            {**batch, key: value} if isinstance(batch, Mapping) and key in batch else batch
            for batch in own
        ]

    return WindowEdit(batches=batches)
