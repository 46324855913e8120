"""Whether models are in training or in eval mode while they are trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from holter.record.signals import MODE_EVAL_FRACTION, MODE_TRAINING, Signal
from holter.watching.collectors.lane import ABSENT, Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Model, Roster, Subject


@dataclass(slots=True)
class _Looked:
    """A model, its places in the row, and the share of its modules that are in eval mode."""

    model: Model
    training: int
    fraction: int
    trainers: frozenset[int]  # indices of the optimizers that hold any of its parameters
    share: float = 0.0


class Modes:
    """Looks at each model when the first backward of a step begins.

    At a light step, the modules of a model are looked at only if `train()` or `eval()` was called.
    Where several optimizers take turns, a model has a mode only in the steps of its own: a probe
    that is trained on the outputs of another model says nothing about the mode of that one.
    """

    emits: ClassVar[tuple[Signal, ...]] = (MODE_TRAINING, MODE_EVAL_FRACTION)
    repeats: ClassVar[bool] = True

    def __init__(self) -> None:
        self._models: list[_Looked] = []
        self._touched = True  # a mode may have changed since the modules were looked at

    def join(self, lane: Lane) -> None:
        """Hear of models, of their modes, and of backward passes."""
        self._lane, self._row = lane, lane.row
        self._training, self._fraction = lane.places(MODE_TRAINING), lane.places(MODE_EVAL_FRACTION)
        lane.at_roster.append(self._follow)
        lane.at_mode.append(self._touch)
        lane.at_backward.append(self._backward)

    def _follow(self, roster: Roster) -> None:
        self._touched = True
        self._models = []
        for model in roster.models:
            owner = (model.label,)
            fraction = self._fraction[owner] if model.mode_dependent else -1
            trainers = _trainers(model, roster)
            self._models.append(_Looked(model, self._training[owner], fraction, trainers))
        self._lane.at_end[:] = [hear for hear in self._lane.at_end if hear != self._end]
        if len(roster.subjects) > 1:
            self._lane.at_end.append(self._end)

    def _touch(self) -> None:
        self._touched = True

    def _backward(self, roots: Sequence[Tensor], opens: bool, depth: Depth) -> None:  # noqa: ARG002
        if not opens:
            return
        row, afresh = self._row, self._touched or depth > Depth.LIGHT
        self._touched = False
        for looked in self._models:
            row[looked.training] = looked.model.module.training
            if looked.fraction >= 0:
                if afresh:
                    modules = looked.model.mode_dependent
                    looked.share = sum(not module.training for module in modules) / len(modules)
                row[looked.fraction] = looked.share

    def _end(self, stepped: Sequence[Subject]) -> None:
        """Forget the modes of models that this step did not train."""
        indices = {subject.index for subject in stepped}
        for looked in self._models:
            if looked.trainers and not looked.trainers & indices:
                self._row[looked.training] = ABSENT
                if looked.fraction >= 0:
                    self._row[looked.fraction] = ABSENT


def _trainers(model: Model, roster: Roster) -> frozenset[int]:
    parameters = {id(parameter) for parameter in model.module.parameters()}
    return frozenset(
        subject.index
        for subject in roster.subjects
        if any(id(parameter) in parameters for parameter in subject.parameters[: subject.held])
    )
