"""What a script does to gradients before an update and to weights after it, line by line."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType

from torch import Tensor
from torch.optim import Optimizer

from holter.scripts.recognition.kinds import is_library, is_ours
from holter.scripts.recognition.tracing import Tracer

_GAPS = 32  # that are looked at for each optimizer until one with a write is seen
_BACKWARDS = 64  # after which gradients are looked at
_MOST = 2 * 10**6  # values that are compared after each line


@dataclass(frozen=True, eq=False)
class Write:
    """Lines that wrote to tensors in a gap, and what they made of them."""

    frame: FrameType
    lines: frozenset[int]
    began: int  # the line of the frame at which the gap began: that of backward or of the update
    parameters: Sequence[Tensor]
    before: Sequence[Tensor]  # of each parameter: itself, or its gradient
    after: Sequence[Tensor]


@dataclass(eq=False)
class _Gap:
    parameters: Sequence[Tensor]
    tensors: Callable[[], Sequence[Tensor]]
    before: list[Tensor]
    now: list[Tensor]
    lines_at_begin: dict[FrameType, int]
    at: tuple[FrameType, int]
    lines: dict[FrameType, set[int]] = field(default_factory=dict)
    ignores: bool = False  # what the line under way writes is known otherwise

    def look(self) -> None:
        """Charge a write to the line that has just run."""
        present = self.tensors()
        if len(present) != len(self.now):
            return
        changed = [n for n, tensor in enumerate(present) if not _same(tensor, self.now[n])]
        if changed:
            self.now = [tensor.detach().clone() for tensor in present]
            if not self.ignores:
                self.lines.setdefault(self.at[0], set()).add(self.at[1])
        self.ignores = False


class Writes:
    """Compares gradients from backward to the update, and weights from there to backward."""

    def __init__(self, tracer: Tracer, parameters: Callable[[], Sequence[Tensor]]) -> None:
        self._tracer, self._parameters = tracer, parameters
        self._gap: _Gap | None = None
        self._ended: _Gap | None = None  # of gradients: the optimizer is known after its step
        self._optimizer: Optimizer | None = None  # that stepped last
        self._backwards = 0  # after which gradients were looked at
        self._looked: dict[tuple[str, int], int] = {}
        self.gradients: dict[int, Write] = {}  # by the identity of the optimizer that follows
        self.weights: dict[int, Write] = {}  # by that of the optimizer before

    def backward_begins(self) -> None:
        """Weights are as the step found them."""
        gap, self._gap = self._close(), None
        if gap is not None and self._optimizer is not None:
            self._keep(self.weights, "weights", self._optimizer, gap)
        self._optimizer = None

    def backward_ended(self, *, scaled: bool) -> None:
        """Look at gradients from here on; a loss scaler divides them by itself."""
        if not scaled and self._backwards < _BACKWARDS:
            self._backwards += 1
            self._begin(self._gradients)

    def known(self) -> None:
        """What the line under way does to gradients is known otherwise: it clips them."""
        if self._gap is not None:
            self._gap.ignores = True

    def step_begins(self) -> None:
        """Gradients are as the update finds them."""
        self._ended, self._gap = self._close(), None

    def stepped(self, optimizer: Optimizer) -> None:
        """Look at weights from here on."""
        gap, self._ended = self._ended, None
        if gap is not None:
            self._keep(self.gradients, "gradients", optimizer, gap)
        self._close()
        self._gap, self._optimizer = None, optimizer
        if self._wants("weights", optimizer):
            self._begin(self._parameters)

    def stop(self) -> None:
        """Look no more."""
        self._close()
        self._gap = None

    def _gradients(self) -> list[Tensor]:
        return [p.grad for p in self._parameters() if p.grad is not None]

    def _wants(self, what: str, optimizer: Optimizer) -> bool:
        return self._looked.get((what, id(optimizer)), 0) < _GAPS

    def _begin(self, tensors: Callable[[], Sequence[Tensor]]) -> None:
        self._close()
        self._gap = None
        held, frames = tensors(), list(_users(sys._getframe(1)))  # noqa: SLF001
        parameters = self._parameters()
        if tensors == self._gradients:
            parameters = [parameter for parameter in parameters if parameter.grad is not None]
        if not frames or sum(tensor.numel() for tensor in held) > _MOST:
            return
        copies = [tensor.detach().clone() for tensor in held]
        lines = {frame: frame.f_lineno for frame in frames}
        at = frames[0], frames[0].f_lineno
        self._gap = _Gap(parameters, tensors, copies, copies, lines, at)
        self._tracer.notice_lines(frames, self._line)

    def _line(self, frame: FrameType) -> None:
        if self._gap is not None:
            self._gap.look()
            self._gap.at = frame, frame.f_lineno

    def _close(self) -> _Gap | None:
        if self._gap is None:
            return None
        self._gap.look()
        self._tracer.ignore_lines()
        return self._gap

    def _keep(self, kept: dict[int, Write], what: str, optimizer: Optimizer, gap: _Gap) -> None:
        key = what, id(optimizer)
        self._looked[key] = self._looked.get(key, 0) + 1
        if id(optimizer) in kept or len(gap.lines) != 1 or len(gap.before) != len(gap.now):
            return
        ((frame, lines),) = gap.lines.items()
        if frame in gap.lines_at_begin:
            began = gap.lines_at_begin[frame]
            kept[id(optimizer)] = Write(
                frame, frozenset(lines), began, gap.parameters, gap.before, gap.now
            )
            self._looked[key] = _GAPS


def _users(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of the script, the innermost first."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file) and not is_ours(file):
            yield frame
        frame = frame.f_back


def _same(one: Tensor, other: Tensor) -> bool:
    if one.layout is not other.layout or one.shape != other.shape:
        return False
    if one.is_sparse:
        return True
    return bool(((one == other) | (one.isnan() & other.isnan())).all())
