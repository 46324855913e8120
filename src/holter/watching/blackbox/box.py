"""BlackBox: decides what is kept of a training, and writes it to disk when something breaks."""

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer

from holter.record.events import (
    BatchInspected,
    CaptureWritten,
    Occurrence,
    SkippedStep,
)
from holter.record.meta import Meta
from holter.record.notices import tell
from holter.record.signals import Signal
from holter.watching.blackbox.alarms import Alarm, Alarms
from holter.watching.blackbox.capture import write_capture
from holter.watching.blackbox.kept_edits import KeptEdits
from holter.watching.blackbox.memory import free_memory
from holter.watching.blackbox.ring import Fetch, Rates, Ring, Settings, tensors_of
from holter.watching.blackbox.shadow import (
    Shadow,
    TooLargeError,
    bytes_of,
    held_by,
    state_tensors,
)
from holter.watching.stats.shards import local

SHARE = 0.3  # of the budget of a watch
_STEPS = 4096  # in the ring at most
_LONGEST_GAP, _SHORTEST_GAP = 1 << 16, 16  # steps between two snapshots
# Captures of a kind in a run.
_MOST = {"nonfinite": 1, "spike": 3, "growth": 1, "descent": 1, "exception": 1, "asked": 16}
_RING_SHARE, _SHADOW_SHARE = 0.05, 0.2  # of the host's free memory: together a quarter
_RING_BYTES = 1 << 30
_A_PARAMETER = 12  # bytes that a snapshot may take, which weights and Adam do in float32
_SLACK = 1.01  # for buffers, counts and alignment
_SMALL = 64 << 20  # bytes of state that may be kept twice, and whatever they are a parameter
_WORTH_A_SENTENCE = 128 << 20
_FRESH = 8  # steps without a loss on the host, at most, before the only snapshot is replaced
_LATE, _LATE_ON_GPU = 32, 128  # steps that are kept at least: readings arrive late
_LEAD = 16  # steps before a failure: losses of short steps are not read more often
_ON_GPU = 128  # steps between the first snapshots, whose cost is known late
_AT_ONCE = 1 << 30  # bytes of GPU state that may be copied before the first step


OnNonfinite = Literal["record", "skip", "raise", "stop"]


class NonfiniteError(FloatingPointError):
    """Gradients are not finite, and the watch was asked to end the training then."""


class BlackBox:
    """Keeps the last steps and snapshots of the state, and writes them to `folder` on an alarm.

    A watch tells it of the training. It raises into the training only if `on_nonfinite` says so.
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
        announce: bool = False,
        samples: bool = True,
    ) -> None:
        self._keeps_samples = samples  # else nothing is captured
        self._announce = announce
        self._folder, self._about, self._rank = folder, about, rank
        self._on_nonfinite, self._capture_at = on_nonfinite, capture_at
        # The gradients of each update are checked, as the script has asked.
        self.may_interrupt = on_nonfinite != "record"
        self._attended: tuple[int, ...] = ()
        self._event, self._note = event, note
        self._share = None if share is None else share * SHARE
        self._alarms = Alarms()
        self._suspects = False  # a loss has left its band
        self._seen = -1  # the last step whose loss is on the host
        self._ring: Ring | None = None
        self._shadow: Shadow | None = None
        self._edits: KeptEdits | None = None
        self._every = _SHORTEST_GAP
        self._due = 0  # the step before which the next snapshot is taken
        self._fetches = False  # whether the steps fetch from a loader
        # The last batch of each loader before a model is watched: it may be that of the first step.
        self._early: dict[str, Fetch] = {}
        self._hyperparameters: tuple[Rates, Settings] = (), ()  # of the last step
        self._stepped: tuple[str, ...] = ()  # labels of the optimizers that made the last step
        self.minds_updates = True  # there is something to be done before an update
        self._functions: set[str] = set()  # loss functions called since the last update
        self._stage: tuple[frozenset[str], Any, int] = (frozenset(), None, 0)
        self._length: float | None = None  # of a step, in seconds
        self._last = time.perf_counter()
        self._written: dict[str, int] = {}
        self._writing: threading.Thread | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is memory for snapshots of the state."""
        return self._shadow is not None

    def attend(
        self, step: int, models: Mapping[str, nn.Module], optimizers: Mapping[str, Optimizer]
    ) -> None:
        """Keep the state of these from `step` on, whose update is still to come."""
        identities = tuple(id(owner) for owner in (*models.values(), *optimizers.values()))
        if not self._keeps_samples or not optimizers or identities == self._attended:
            return
        self._attended = identities
        early, self._early = list(self._early.values()), {}
        free = free_memory()
        # Optimizers create their state at the first step: mostly two tensors for each parameter.
        state = bytes_of(state_tensors(models, optimizers))
        expected = max(state, 3 * sum(_bytes(model) for model in models.values()))
        parameters = sum(p.numel() for model in models.values() for p in model.parameters())
        limit = min(max(_A_PARAMETER * parameters * _SLACK, _SMALL), _SHADOW_SHARE * free)
        if self._shadow is not None:
            self._shadow.close()
        if expected > limit:
            self._turn_off(expected)
            return
        copies = 2 if 2 * expected <= _SMALL else 1
        shadow = Shadow(models, optimizers, copies=copies, limit=limit)
        if self._announce and expected > _WORTH_A_SENTENCE:
            tell(
                f"the black box keeps a snapshot of the state, {expected / 2**30:.1f} GiB of host"
                " memory; black_box=False turns it off"
            )
        cuda = any(p.is_cuda for model in models.values() for p in model.parameters())
        self._shadow, self._due = shadow, 0
        known = set() if self._edits is None else self._edits.told
        self._edits = KeptEdits(models, optimizers, event=self._event, told=known)
        if self._ring is None:
            most = int(min(_RING_SHARE * free, _RING_BYTES))
            self._ring = Ring(steps=_STEPS, limit=most, cuda=cuda)
            self._ring.begin(step, early)
            self._fetches = bool(early)
            if not cuda or state <= _AT_ONCE:
                shadow.take(step)  # taken again where the step begins later: with its batch

    def _turn_off(self, nbytes: int) -> None:
        self._shadow = self._ring = self._edits = None
        self._note(
            f"The black box is off: a snapshot of the state takes {nbytes / 2**30:.1f} GiB, more"
            f" than {_A_PARAMETER} bytes a parameter or a fifth of the free host memory."
        )

    def fetched(self, step: int, loader: str, batch: Any) -> None:
        """A loader delivered a batch for `step`."""
        if not self._keeps_samples:
            return
        if not self._attended:
            cuda: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
            self._early[loader] = Fetch.of(loader, batch, cuda=cuda)
        if self._ring is None or self._shadow is None:
            return
        entry = self._ring.open
        if entry is None or entry.step != step:
            self._ring.begin(step)
        self._fetches = True
        if not (entry and entry.step == step and entry.fetches):
            self._copy_if_due(step)
        if self._ring is not None:
            self._ring.fetched(loader, batch)

    def pass_begins(self, loader: str) -> None:
        """A loader starts again: what it delivered since the last update was not trained on."""
        self._early.pop(loader, None)
        if self._ring is not None:
            self._ring.discard(loader)

    def loss_computed(self, function: str) -> None:
        """A loss function was called for the coming update."""
        self._functions.add(function)

    def before_update(self, step: int, optimizer: Optimizer) -> None:
        """See an update begin: its stage, what was edited, a copy under way that comes first."""
        entry = None if self._ring is None else self._ring.entry(step)
        batches = 0 if entry is None else len(entry.fetches)  # sums of more batches are larger
        functions, known, count = self._stage
        if self._functions or known is None or known() is not optimizer or count != batches:
            functions = frozenset(self._functions) or functions  # not always told
            self._functions.clear()
            self._stage = functions, weakref.ref(optimizer), batches
            self._alarms.begins(step, self._stage)
        if self._shadow is not None and self._shadow.copying is not None:
            self._shadow.before_update()
        if self._edits is not None and entry is not None:
            try:
                self._edits.before_update(entry, optimizer, self._length or 0.0)
                self._stepped = entry.stepped
            except Exception as error:  # of no importance to the training
                self._edits = None
                self._note(f"Edits of weights between steps are not recorded: {error}")

    def interrupt(self, step: int, optimizer: Optimizer, *, scaled: bool) -> None:
        """Skip or prevent an update whose gradients are not finite, unless a GradScaler does."""
        if scaled or _is_finite(optimizer):
            return
        if self._on_nonfinite == "skip":
            optimizer.zero_grad()  # such an update leaves weights and optimizer as they are
            self._event(SkippedStep(optimizer="", by="holter"))
            tell(f"the gradients of step {step} are not finite: step skipped")
            return
        self.capture(Alarm("nonfinite", step, "gradients are not finite"))
        self.finish()
        sentence = (
            f"The gradients of step {step} are not finite; the weights have not been updated."
        )
        if self._on_nonfinite == "stop":
            tell(sentence)
            raise SystemExit(1)
        raise NonfiniteError(sentence)

    def look_at_hyperparameters(self) -> None:
        """Keep the hyperparameters of the steps to come, which the same update makes again."""
        if self._shadow is not None:
            self._hyperparameters = self._shadow.hyperparameters()

    def resume(self, step: int) -> None:
        """See an update under way that was not told of: it is made as the one before."""
        entry = None if self._ring is None else self._ring.entry(step)
        if entry is not None and not entry.stepped:
            entry.stepped = self._stepped

    def rates_changed(self, rates: Sequence[float]) -> None:
        """Keep the learning rates of the steps to come, of the groups of the only optimizer."""
        self._hyperparameters = (tuple(rates),), self._hyperparameters[1]

    def updated(self, step: int, *, again: bool = False) -> None:
        """End the entry of `step` in the ring: an optimizer has stepped.

        It may have done so `again`, with the hyperparameters of its last step.
        """
        ring, shadow = self._ring, self._shadow
        if ring is None or shadow is None:
            return
        entry, edits, now = ring.open, self._edits, time.perf_counter()
        if entry is not None and entry.step == step and not entry.rates:
            if not again:
                self._hyperparameters = shadow.hyperparameters()
            elif not entry.stepped:  # updates are not minded: nothing was told of its beginning
                entry.stepped = self._stepped
            entry.rates, entry.settings = self._hyperparameters
        if edits is not None:
            edits.updated(None if self._share is None else self._length)
        if entry is None or entry.step <= step:  # two optimizers may share a step
            ring.begin(step + 1)
        if not self._fetches and step + 1 >= self._due:
            self._copy_if_due(step + 1)
        if step == self._capture_at:
            self.capture(Alarm("asked", step, "asked for"))
        self.minds_updates = shadow.copying is not None or (edits is not None and edits.is_waiting)
        length, self._last = now - self._last, now
        before = length if self._length is None else self._length
        self._length = 0.9 * before + 0.1 * min(length, 2 * before)  # a pause is not a long step

    def see_loss(self, step: int, loss: float) -> bool:
        """Look for an alarm in the loss of a light step; True for an odd one."""
        self._seen = step
        alarm = self._alarms.see_loss(step, loss)
        if alarm is None and self._alarms.suspects is self._suspects:
            return False
        return self._react(alarm)

    def see_losses(self, first: int, losses: Sequence[float]) -> bool:
        """Look for alarms in finite losses of light steps from one on; True for odd ones."""
        usual = self._alarms.see_usual_losses(first, losses)
        self._seen = first + usual - 1 if usual else self._seen
        is_odd = False
        for step, loss in enumerate(losses[usual:], first + usual):
            is_odd |= self.see_loss(step, loss)
        return is_odd

    def see(self, step: int, readings: Mapping[Signal, Sequence[float]]) -> bool:
        """Look for an alarm in readings that have arrived on the host; True for odd ones."""
        self._seen = step
        return self._react(self._alarms.see(step, readings))

    def _react(self, alarm: Alarm | None) -> bool:
        if alarm is not None:
            if alarm.kind == "nonfinite" and alarm.kind not in self._written:
                self._inspect(alarm.step)
            self.capture(alarm)
        before, self._suspects = self._suspects, self._alarms.suspects
        return alarm is not None or (self._suspects and not before)

    def _inspect(self, step: int) -> None:
        """Count what is not finite in the batch of a step, whose inputs may not have been read."""
        entries = self._ring.since(step)[:1] if self._ring is not None else []
        for fetch in [fetch for entry in entries if entry.step == step for fetch in entry.fetches]:
            floats = [tensor for tensor in tensors_of(fetch.batch) if tensor.is_floating_point()]
            if floats:
                bad = sum(int((~torch.isfinite(tensor)).sum()) for tensor in floats)
                size = sum(tensor.numel() for tensor in floats)
                self._event(BatchInspected(step, fetch.loader, bad, size))

    def capture(self, alarm: Alarm) -> Path | None:
        """Write the last steps in a thread; return the folder they go to, or None."""
        if self._ring is None or self._shadow is None or self._is_writing:
            return None
        if self._written.get(alarm.kind, 0) >= _MOST[alarm.kind]:
            return None
        # With some steps before the failure, if the older snapshot reaches back so far.
        snapshot = self._shadow.newest_before(alarm.step - _LEAD)
        snapshot = snapshot or self._shadow.newest_before(alarm.step)
        if snapshot is None:
            return None
        entries = self._ring.since(snapshot.step)
        if not entries or entries[0].step != snapshot.step:
            self._note(
                f"The batches since the snapshot at step {snapshot.step} did not fit in memory;"
                f" no capture of step {alarm.step} was written."
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
                self._note(f"The capture of step {alarm.step} could not be written: {error}.")
                return
            self._event(CaptureWritten(alarm.kind, alarm.step, path.name))
            tell(
                f"{alarm.says} at step {alarm.step}; the last {len(entries)} steps are in {path}."
                f" To find the cause: holter try replay {self._folder}"
            )

        self._writing = threading.Thread(target=write, name="holter-capture")
        self._writing.start()
        return path

    def finish(self) -> None:
        """Wait for a capture that is being written."""
        if self._writing is not None:
            self._writing.join()
            self._writing = None

    def close(self) -> None:
        """Wait for a capture that is being written, and give all memory back."""
        self.finish()
        if self._shadow is not None:
            self._shadow.close()
        self._shadow = self._ring = self._edits = None

    @property
    def _is_writing(self) -> bool:
        return self._writing is not None and self._writing.is_alive()

    def _copy_if_due(self, step: int) -> None:
        if step < self._due or self._is_writing:
            return
        shadow, ring = self._shadow, self._ring
        assert shadow is not None
        assert ring is not None
        if self._alarms.suspects:  # the snapshot from before a spike is kept until it is decided
            return
        if shadow.copies == 1 and step - self._seen > _FRESH and step < self._due + self._every:
            return  # something may have broken since, and only the snapshot from before helps
        try:
            self._copy(step, shadow, ring)
        except TooLargeError as error:
            shadow.close()
            self._turn_off(error.nbytes)

    def _copy(self, step: int, shadow: Shadow, ring: Ring) -> None:
        if not shadow.is_ready():
            return
        began = time.perf_counter()
        shadow.take(step)
        ring.forget(min(shadow.oldest, step - (_LATE_ON_GPU if ring.is_on_gpu else _LATE)))
        took = time.perf_counter() - began
        copied = shadow.cost  # of the snapshot before this one
        wanted = 0.0
        if copied is None:
            self._every = _ON_GPU
        elif self._share is not None and self._length:
            wanted = min((took + copied) / (self._share * self._length), _LONGEST_GAP)
            self._every = int(max(wanted, _SHORTEST_GAP))
        # The ring should reach back to the snapshot, unless that would cost too much.
        self._every = int(max(min(self._every, ring.most // 2), wanted, 1))
        self._due = step + self._every


def _is_finite(optimizer: Optimizer) -> bool:
    """Whether all gradients are finite; waits for a GPU."""
    gradients = [p.grad for p in held_by(optimizer) if p.grad is not None]
    if not gradients:
        return True
    norms = torch._foreach_norm(list(local(gradients)))  # noqa: SLF001  (as clip_grad_norm_ does)
    return bool(torch.stack([norm.float().to(norms[0].device) for norm in norms]).isfinite().all())


def _bytes(model: nn.Module) -> int:
    return sum(parameter.nbytes for parameter in model.parameters())
