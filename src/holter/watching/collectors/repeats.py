"""Whether backward is called again on a loss that it was called on before."""

from collections.abc import Iterable
from typing import Any, ClassVar

from holter.record.signals import BACKWARD_REPEATED, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.moments import BackwardBegins, Depth, StepEnds

_MARK = "holter.backward"


class Repeats:
    """Marks the node of the graph that a loss comes from, in its `metadata`.

    The mark goes when the node goes: nothing is kept alive, and no identity is given away again.
    """

    emits: ClassVar[tuple[Signal, ...]] = (BACKWARD_REPEATED,)
    at: ClassVar[tuple[type, ...]] = (BackwardBegins, StepEnds)
    depth: ClassVar[Depth] = Depth.REGULAR
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._step = object()  # what marks of the open step are
        self._repeated: int | None = None

    def read(self, moment: BackwardBegins | StepEnds) -> Iterable[Reading]:
        """The count, at the end of the step."""
        if isinstance(moment, StepEnds):
            repeated, self._repeated, self._step = self._repeated, None, object()
            return () if repeated is None else (Reading(BACKWARD_REPEATED, STEP, [repeated]),)
        before = False
        for root in moment.roots if moment.whole else ():
            if root.grad_fn is not None:
                metadata: Any = root.grad_fn.metadata  # torch's own annotation is of another thing
                before |= metadata.get(_MARK) is self._step
                metadata[_MARK] = self._step
        self._repeated = (self._repeated or 0) + before
        return ()
