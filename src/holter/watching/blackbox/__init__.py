"""The black box: the last steps and a copy of the state, written to disk when something breaks."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer

from holter.record.events import CaptureWritten, Occurrence, SkippedStep
from holter.record.meta import Meta
from holter.record.notices import tell
from holter.record.signals import Signal
from holter.watching.blackbox.alarms import Alarm, Alarms
from holter.watching.blackbox.capture import write_capture
from holter.watching.blackbox.ring import Fetch, Ring
from holter.watching.blackbox.shadow import Shadow, held_by
from holter.watching.stats.shards import local

SHARE = 0.3  # of the budget of a watch
_STEPS = 4096  # in the ring at most
_SELDOMEST, _OFTENEST = 2048, 16  # steps between two copies of the state
_MOST = {"nonfinite": 1, "spike": 3, "exception": 1, "asked": 16}  # captures of a kind in a run
_RING_SHARE, _SHADOW_SHARE = 0.1, 0.25  # of the host's free memory
_RING_BYTES = 4 << 30
_LEAD = 16  # steps before a failure: losses of short steps are not read more often
_ON_GPU = 128  # steps between the first copies, whose cost is known late
_AT_ONCE = 1 << 30  # bytes of a GPU's state that may be copied before the first step


OnNonfinite = Literal["record", "skip", "raise", "stop"]


class NonfiniteError(FloatingPointError):
    """Gradients are not finite, and the training was to end then."""


class BlackBox:
    """Keeps the window of a training, and writes it to `folder` on an alarm.

    It is told of a training by a watch, and never raises into it but where it is asked to.
    """

    def __init__(
        self,
        folder: Path,
        *,
        about: Callable[[], Meta],
        share: float | None,
        event: Callable[[Occurrence], None],
        note: Callable[[str], None],
        on_nonfinite: OnNonfinite = "record",
        capture_at: int | None = None,
        rank: int = 0,
    ) -> None:
        self._folder, self._about, self._rank = folder, about, rank
        self._on_nonfinite, self._capture_at = on_nonfinite, capture_at
        self._attended: tuple[int, ...] = ()
        self._event, self._note = event, note
        self._share = None if share is None else share * SHARE
        self._alarms = Alarms()
        self._ring: Ring | None = None
        self._shadow: Shadow | None = None
        self._every = _OFTENEST
        self._due = 0  # the step before which the next copy is taken
        self._fetches = False  # whether the steps fetch from a loader
        # What loaders delivered last before it was known what is trained: of the first step, maybe.
        self._early: dict[str, Fetch] = {}
        self._length: float | None = None  # of a step, in seconds
        self._last = time.perf_counter()
        self._written: dict[str, int] = {}
        self._writing: threading.Thread | None = None
        self.spent = 0.0  # seconds, over the whole training

    @property
    def is_on(self) -> bool:
        """Whether there is room for a copy of the state."""
        return self._shadow is not None

    def attend(
        self, step: int, models: Mapping[str, nn.Module], optimizers: Mapping[str, Optimizer]
    ) -> None:
        """These are trained from `step` on, whose update is still to come."""
        those = tuple(id(each) for each in (*models.values(), *optimizers.values()))
        if not optimizers or those == self._attended:
            return
        self._attended = those
        early, self._early = list(self._early.values()), {}
        shadow, free = Shadow(models, optimizers), _free_memory()
        # Optimizers make their state at the first step: mostly two tensors for each parameter.
        expected = max(shadow.nbytes, 6 * sum(_bytes(model) for model in models.values()))
        if expected > _SHADOW_SHARE * free:
            self._shadow = None
            self._note(
                f"The black box is off: copies of the state would take {expected / 2**30:.1f} GiB"
                f" of the {free / 2**30:.1f} GiB that are free on the host."
            )
            return
        cuda = any(p.is_cuda for model in models.values() for p in model.parameters())
        limit = int(min(_RING_SHARE * free, _RING_BYTES))
        self._shadow, self._due = shadow, 0
        if self._ring is None:
            self._ring = Ring(steps=_STEPS, limit=limit, cuda=cuda)
            self._ring.begin(step, early)
            self._fetches = bool(early)
            if not cuda or shadow.nbytes <= _AT_ONCE:
                shadow.take(step)  # taken again where the step begins later: with its batch

    def fetched(self, step: int, loader: str, batch: Any) -> None:
        """A loader delivered a batch for `step`."""
        if not self._attended:
            cuda: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
            self._early[loader] = Fetch.of(loader, batch, cuda=cuda)
        if self._ring is None or self._shadow is None:
            return
        began = time.perf_counter()
        entry = self._ring.open
        if entry is None or entry.step != step:
            self._ring.begin(step)
        self._fetches = True
        if not (entry and entry.step == step and entry.fetches):
            self._copy_if_due(step)
        self._ring.fetched(loader, batch)
        self.spent += time.perf_counter() - began

    def pass_begins(self, loader: str) -> None:
        """A loader begins anew: nobody trained on what it delivered since the last update."""
        self._early.pop(loader, None)
        if self._ring is not None:
            self._ring.discard(loader)

    def before_update(self, step: int, optimizer: Optimizer, *, scaled: bool) -> None:
        """An optimizer is about to step in `step`; a loss scale skips bad steps by itself."""
        if self._shadow is not None:
            self._shadow.before_update()
        if self._on_nonfinite == "record" or scaled or _is_finite(optimizer):
            return
        if self._on_nonfinite == "skip":
            for parameter in held_by(optimizer):
                parameter.grad = None  # such an update leaves weights and optimizer as they are
            self._event(SkippedStep(optimizer="", by="holter"))
            tell(f"the gradients of step {step} are not finite: the step is skipped")
            return
        self.capture(Alarm("nonfinite", step, "gradients are not finite"))
        self.finish()
        sentence = f"The gradients of step {step} are not finite; the weights are still clean."
        if self._on_nonfinite == "stop":
            tell(sentence)
            raise SystemExit(1)
        raise NonfiniteError(sentence)

    def updated(self, step: int) -> None:
        """An optimizer has stepped, in `step`."""
        if self._ring is None or self._shadow is None:
            return
        began = time.perf_counter()
        entry = self._ring.open
        if entry is not None and entry.step == step and not entry.rates:
            entry.rates = self._shadow.rates
        if entry is None or entry.step <= step:  # two optimizers may share a step
            self._ring.begin(step + 1)
        if not self._fetches:
            self._copy_if_due(step + 1)
        if step == self._capture_at:
            self.capture(Alarm("asked", step, "asked for"))
        length, self._last = began - self._last, began
        before = length if self._length is None else self._length
        self._length = 0.9 * before + 0.1 * min(length, 2 * before)  # pauses are no long steps
        self.spent += time.perf_counter() - began

    def see(self, step: int, readings: Mapping[Signal, Sequence[float]]) -> None:
        """Readings of a step have arrived on the host."""
        alarm = self._alarms.see(step, readings)
        if alarm is not None:
            self.capture(alarm)

    def capture(self, alarm: Alarm) -> Path | None:
        """Write the window of an alarm in a thread; where it will be, or None."""
        if self._ring is None or self._shadow is None or self._is_writing:
            return None
        if self._written.get(alarm.kind, 0) >= _MOST[alarm.kind]:
            return None
        # With some steps before the failure, where the older copy reaches back so far.
        snapshot = self._shadow.newest_before(alarm.step - _LEAD)
        snapshot = snapshot or self._shadow.newest_before(alarm.step)
        if snapshot is None:
            return None
        entries = self._ring.since(snapshot.step)
        if not entries or entries[0].step != snapshot.step:
            self._note(
                f"The black box does not reach back to its copy of the state at step"
                f" {snapshot.step}: batches are too large to keep so many."
            )
            return None
        self._written[alarm.kind] = self._written.get(alarm.kind, 0) + 1
        name = f"step-{alarm.step:08d}-{alarm.kind}"
        path = self._folder / "captures" / (f"{name}-rank-{self._rank}" if self._rank else name)
        about = {**self._about().to_json(), "rank": self._rank}

        def write() -> None:
            try:
                write_capture(path, alarm, snapshot, entries, about)
            except Exception as error:
                tell(f"the window of step {alarm.step} could not be written ({error})")
                return
            self._event(CaptureWritten(alarm.kind, alarm.step, path.name))
            tell(
                f"{alarm.says} at step {alarm.step}: the last {len(entries)} steps are kept in"
                f" {path}; `holter try replay {self._folder}` looks for the cause"
            )

        self._writing = threading.Thread(target=write, name="holter-capture")
        self._writing.start()
        return path

    def finish(self) -> None:
        """Wait for a window that is being written."""
        if self._writing is not None:
            self._writing.join()
            self._writing = None

    @property
    def _is_writing(self) -> bool:
        return self._writing is not None and self._writing.is_alive()

    def _copy_if_due(self, step: int) -> None:
        assert self._shadow is not None
        assert self._ring is not None
        if step < self._due or self._is_writing or not self._shadow.is_ready():
            return
        if self._alarms.suspects:  # the copy from before a spike is kept until it is judged
            return
        began = time.perf_counter()
        self._shadow.take(step)
        took = time.perf_counter() - began
        copied = self._shadow.cost  # of the copy before this one
        if copied is None:
            self._every = _ON_GPU
        elif self._share is not None and self._length:
            wanted = (took + copied) / (self._share * self._length)
            self._every = int(min(max(wanted, _OFTENEST), _SELDOMEST))
        self._every = max(min(self._every, self._ring.most // 2), 1)
        self._due = step + self._every


def _is_finite(optimizer: Optimizer) -> bool:
    """Whether all gradients are finite; waits for a GPU."""
    grads = [each.grad for each in held_by(optimizer) if each.grad is not None]
    if not grads:
        return True
    norms = torch._foreach_norm(list(local(grads)))  # noqa: SLF001  (as clip_grad_norm_ does)
    return bool(torch.stack([each.float().to(norms[0].device) for each in norms]).isfinite().all())


def _bytes(model: nn.Module) -> int:
    return sum(each.nbytes for each in model.parameters())


def _free_memory() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
