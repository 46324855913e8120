"""Where a replay departs from what was recorded, and what may have done it."""

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from holter.lab.replay.outcomes import ReplayTrial
from holter.lab.replay.window import FailureWindow
from holter.record import Run
from holter.record.signals import WEIGHT_NORM

_APART = 1e-4  # relative, of norms that different kernels compute
_NAMED = 3  # objects that are listed


@dataclass(frozen=True, slots=True)
class Departure:
    """The first step whose loss is not the recorded one, the tensor, and what may have done it."""

    step: int
    tensor: str  # whose norm departs first; empty where none was recorded
    suspects: tuple[str, ...]

    @property
    def says(self) -> str:
        """Where it departs, and what may have done it."""
        where = f" in {self.tensor}" if self.tensor else ""
        return f"the replay departs at step {self.step}{where}; possible causes: " + "; ".join(
            self.suspects
        )


def departure(window: FailureWindow, unchanged: ReplayTrial) -> Departure | None:
    """Find the first step that differs from the recording, or None."""
    for step, outcome in zip(unchanged.steps, unchanged.outcomes, strict=True):
        recorded = window.recorded(step)
        if recorded is not None and not same_bits(outcome.loss, recorded):
            return Departure(step, _tensor(window, step), tuple(_suspects(window, step)))
    return None


def same_bits(one: float, other: float) -> bool:
    """Whether two losses are the same in float32, NaN counting as NaN."""
    return np.float32(one).tobytes() == np.float32(other).tobytes() or (
        math.isnan(one) and math.isnan(other)
    )


def _tensor(window: FailureWindow, until: int) -> str:
    """Return the parameter whose norm is the first to differ from the recorded one, or ""."""
    if window.run is None or WEIGHT_NORM not in window.run:
        return ""
    series = window.run[WEIGHT_NORM]
    window.restore()
    for step in window.steps:
        if step.step > until:
            break
        window.between(step)
        window.one(step)
        apart: dict[str, float] = {}
        for label, model in window.setup.models.items():
            for name, parameter in model.named_parameters():
                owner = f"{label}.{name}".removeprefix(".")
                if owner not in series or step.step not in series[owner].steps:
                    continue
                place = int(np.searchsorted(series[owner].steps, step.step))
                recorded = float(series[owner].values[place])
                norm = float(torch.linalg.vector_norm(parameter.detach().double()))
                if math.isfinite(norm) and math.isfinite(recorded):
                    apart[owner] = abs(norm - recorded) / max(abs(recorded), 1e-30)
        owner = max(apart, key=lambda each: apart[each], default="")
        if owner and apart[owner] > _APART:
            return owner
    return ""


def _suspects(window: FailureWindow, step: int) -> Iterator[str]:
    """Yield what may have done it, what is known first; hardware comes last."""
    setup, steps = window.setup, [each for each in window.steps if each.step <= step]
    yield from changed_since(window.run)
    unknown = {name.split("/", 2)[2] for s in steps for name, c in s.edits.items() if c is None}
    if unknown:
        yield f"the script writes to {listed(sorted(unknown))} between steps; not all of it is kept"
    for phase in setup.phases:
        if phase.regrade is not None and phase.regrade.run is None:
            yield f"the script changes gradients before the update, at {phase.regrade.where}"
        if phase.rewrite is not None and not window.edits.at:
            yield f"the script writes to weights between steps, at {phase.rewrite.where}"
    if any(not fetch.whole for each in steps for fetch in each.fetches):
        yield "a batch was changed in place, or holds objects that cannot be kept"
    if setup.objects:
        names = listed([f"`{name}`" for name in setup.objects])
        yield f"variables of the script that the step uses, and that no capture holds: {names}"
    yield "code between the steps, or files that changed"
    yield "a nondeterministic kernel, or the hardware"


def changed_since(run: Run | None) -> Iterator[str]:
    """Yield what is not as it was when a run was recorded."""
    if run is None:
        return
    environment = run.meta.environment
    torch_then, torch_now = environment.versions.get("torch"), version("torch")
    if torch_then is not None and torch_then != torch_now:
        yield f"another version of torch: {torch_then} recorded it, {torch_now} replays it"
    if environment.started is None or not environment.command:
        return
    script = Path(environment.folder or ".", environment.command[0])
    began = dt.datetime.fromisoformat(environment.started).timestamp()
    if script.is_file() and script.stat().st_mtime > began:
        yield f"{script.name} was edited after the run began"


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
