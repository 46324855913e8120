"""KeptEdits: what a step keeps of weights that the script wrote to, and who made it."""

import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.record.events import Occurrence, WeightsEdited
from holter.watching.blackbox.edits import Edits
from holter.watching.blackbox.ring import Entry
from holter.watching.frames import Frames, place

_FREE_COPIES, _COPY_SHARE = 128, 0.03  # copies of edited weights; later, the share of the time
_LOOK_SHARE = 0.003  # of the time, for looks at weights that nobody was seen to write to
_LONGEST = 1 << 10  # updates without a look
_NAMED = 8  # parameters that an event names


class KeptEdits:
    """Keeps copies of edited weights in the entries of steps, as far as there is time for it."""

    def __init__(
        self,
        models: Mapping[str, nn.Module],
        optimizers: Mapping[str, Optimizer],
        *,
        event: Callable[[Occurrence], None],
        told: set[str],
    ) -> None:
        self._edits, self._event = Edits(models, optimizers), event
        self._labels = {id(optimizer): (label,) for label, optimizer in optimizers.items()}
        self._skips = 0  # updates until the next after which weights are looked at
        self._skipped = 0
        self.told = told  # parameters that an event has named
        self._copied = 0, 0.0  # copies of edited parameters, and the seconds they took

    @property
    def is_waiting(self) -> bool:
        """Whether weights are to be looked at before the next update."""
        return self._edits.are_known

    def before_update(self, entry: Entry, optimizer: Optimizer, length: float) -> None:
        """Keep who makes a step, and the weights that the script wrote to since the last update."""
        if not entry.stepped and self._edits.are_known:
            edited = self._edits.found()
            if edited:
                self._keep(entry, edited, length)
        label = self._labels.get(id(optimizer), ())
        if not entry.stepped:
            entry.stepped = label  # one object for all steps
        elif label and label[0] not in entry.stepped:
            entry.stepped += label

    def updated(self, length: float | None) -> None:
        """Remember the weights as an update left them, as often as steps of this length allow."""
        edits = self._edits
        if self._skips > 0:
            self._skips, self._skipped, edits.are_known = self._skips - 1, self._skipped + 1, False
            return
        edits.left(after=self._skipped + 1, length=length)
        self._skipped = 0
        if length and not edits.were_found:
            self._skips = min(int(edits.cost / (_LOOK_SHARE * length)) - 1, _LONGEST)

    def _keep(self, entry: Entry, edited: Mapping[str, Tensor], length: float) -> None:
        count, seconds = self._copied
        copies = count < _FREE_COPIES or seconds <= _COPY_SHARE * count * length
        began = time.perf_counter()
        for name, parameter in edited.items():
            entry.edits[name] = _copy(parameter) if copies else None
        if copies:
            self._copied = count + 1, seconds + time.perf_counter() - began
        self._tell(entry.step, edited)

    def _tell(self, step: int, edited: Mapping[str, Tensor]) -> None:
        """Record parameters that were not seen to be edited before, and between which lines."""
        fresh = [name for name in edited if name not in self.told]
        if not fresh:
            return
        self.told.update(fresh)
        frame = next(Frames().all(), None)
        names = tuple(name.split("/", 2)[2] for name in fresh)
        where = "" if frame is None else place(frame)
        self._event(WeightsEdited(step, names[:_NAMED], len(names), where))


def _copy(parameter: Tensor) -> Tensor:
    """Copy a parameter to the host, without waiting for a device."""
    copy = torch.empty_like(parameter, device="cpu", pin_memory=parameter.is_cuda)
    return copy.copy_(parameter, non_blocking=True)
