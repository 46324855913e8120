"""Whether models are in training or in eval mode while they are trained."""

from collections.abc import Iterable
from typing import ClassVar

from holter.record.signals import MODE_EVAL_FRACTION, MODE_TRAINING, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import BackwardBegins, Depth


class Modes:
    """Looks at each model when the first backward of a step begins."""

    emits: ClassVar[tuple[Signal, ...]] = (MODE_TRAINING, MODE_EVAL_FRACTION)
    at: ClassVar[tuple[type, ...]] = (BackwardBegins,)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._owners: dict[str, tuple[str, ...]] = {}

    def read(self, moment: BackwardBegins) -> Iterable[Reading]:
        """A value for each model."""
        if not moment.opens_step:
            return
        for model in moment.roster.models:
            owner = self._owners.setdefault(model.label, (model.label,))
            yield Reading(MODE_TRAINING, owner, [model.module.training])
            if model.mode_dependent:
                evaluating = sum(not module.training for module in model.mode_dependent)
                share = evaluating / len(model.mode_dependent)
                yield Reading(MODE_EVAL_FRACTION, owner, [share])
