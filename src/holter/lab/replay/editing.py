"""Weights that a script writes to between steps: restored as recorded, or written again."""

from collections.abc import Callable

import torch
from torch import Tensor

from holter.lab.replay.loading import CapturedState
from holter.watching.blackbox.capture import Step

Rewrite = Callable[[], None]


class ScriptEdits:
    """What the script did to weights before each step of a window.

    The unchanged replay restores the recorded values, and sees whether the script's own statements
    give the same. If they do, replays under a change run these statements: what the script writes
    depends on the weights that it finds.
    """

    def __init__(self, captured: CapturedState) -> None:
        self._captured = captured
        self._agrees: dict[int, bool] = {}  # whether the statements gave the recorded values
        self.at: dict[int, tuple[str, ...]] = {}  # the parameters edited before a step

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that are edited in the window."""
        return tuple(dict.fromkeys(name for names in self.at.values() for name in names))

    @property
    def are_repeatable(self) -> bool:
        """Whether the script's statements gave the recorded values wherever they were recorded."""
        return all(self._agrees.get(step, False) for step in self.at)

    def of_start(self, step: Step) -> None:
        """Complete the state before the first step of a window."""
        with torch.no_grad():
            for name, copy in step.edits.items():
                if copy is not None:
                    self._captured.parameter(name).copy_(copy)

    def restore(self, step: Step, rewrite: Rewrite | None) -> None:
        """Put weights back as the script left them before a step."""
        recorded = {name: copy for name, copy in step.edits.items() if copy is not None}
        edited = [
            name
            for name in step.edits
            if name not in recorded or not _same(self._captured.parameter(name), recorded[name])
        ]
        if not edited:
            return
        self.at[step.step] = tuple(name.split("/", 2)[2] for name in edited)
        if rewrite is not None and self._agrees.get(step.step, True):
            try:
                rewrite()
            except Exception:  # the statements depend on what was only there at that time
                self._agrees[step.step] = False
            else:
                self._agrees[step.step] = all(
                    _same(self._captured.parameter(name), copy) for name, copy in recorded.items()
                )
        with torch.no_grad():
            for name, copy in recorded.items():
                self._captured.parameter(name).copy_(copy)

    def repeat(self, step: Step, rewrite: Rewrite | None) -> None:
        """Do what the script did before a step, on weights that may be others now."""
        if step.step not in self.at:
            return
        if rewrite is not None and self.are_repeatable:
            rewrite()
        else:
            self.of_start(step)


def _same(one: Tensor, other: Tensor) -> bool:
    here = one.detach().to(other.device)
    return bool(((here == other) | (here.isnan() & other.isnan())).all())
