"""Session: a script that runs under observation until enough of its training was seen."""

import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from holter.record import environment
from holter.record.notices import Progress
from holter.scripts.discovery import Discovery
from holter.scripts.recognition.capturing import Row, StepCapture, TensorCopies
from holter.scripts.recognition.contexts import Autocast
from holter.scripts.recognition.declining import NotRecognisedError
from holter.scripts.recognition.kinds import look_up
from holter.scripts.recognition.listening import listen
from holter.scripts.recognition.names import dotted
from holter.scripts.recognition.phases import Timeline
from holter.scripts.recognition.planning import plan
from holter.scripts.recognition.returning import Returns
from holter.scripts.recognition.rollouts import Rollouts
from holter.scripts.recognition.sites import Site, is_module_level, locate, visible
from holter.scripts.recognition.sources import step_line
from holter.scripts.recognition.start import Start
from holter.scripts.recognition.tracing import Tracer
from holter.scripts.recognition.updating import OwnUpdates
from holter.scripts.recognition.writes import Writes
from holter.watching.recorder import Recorder
from holter.watching.watch import Watch

MOST_BATCHES = 64
MOST_BYTES = 256 * 2**20
_TRIES = 8  # backwards that are not understood, after which nothing more is expected
_AHEAD = 3  # batches that a script may fetch before it uses the first of them
_PATIENCE = 50  # backwards and batches that are waited for a whole step when time is over
_GRACE = 3  # times the seconds allowed, for a step that has begun: LBFGS makes many calls in it

Key = tuple[Any, int]  # of a site: the code it stands in, and which call it is


@dataclass(eq=False)
class Seen:
    """All that is known of one site."""

    site: Site
    capture: StepCapture
    frame: FrameType  # of its last backward
    names: dict[str, Any] | None = None  # variables of a function at its last backward
    rows: list[tuple[int, Row]] = field(default_factory=list)  # what steps were given, and when
    steps: list[int] = field(default_factory=list)  # of each row: the number of the training step
    first: tuple[int, Row] | None = None  # of the first step here, which is seen after it ran


class Session:
    """Listens to a script; `pause` is called inside of it as soon as enough was seen."""

    def __init__(
        self,
        path: Path,
        *,
        steps: int | None,
        seconds: float,
        pause: Callable[["Session"], None],
        last: int | None = None,
    ) -> None:
        self.watch = Watch(
            Recorder(path, rank=0, environment=environment.describe()),
            budget=None,
            announce=False,
            black_box=False,
        )
        Discovery(self.watch)
        self.start = Start()
        self.timeline = Timeline()
        self.sites: dict[Key, Seen] = {}
        self.refusals: dict[Key, Exception] = {}  # why the step at a place cannot be repeated
        self.repeated: set[str] = set()  # places where backward is called again on the same loss
        self.by_value = False  # whether gradients are clipped one by one
        self.own = OwnUpdates()
        self.processes = 0  # that the script has started
        self.failure: Exception | None = None
        self.otherwise: NotRecognisedError | None = None  # what to say if a library defeats us
        self._steps, self._seconds, self._pause = steps, seconds, pause
        self._last = last  # how many of the latest batches to keep, instead of the first
        self._deadline = float("inf")
        self._thread: int | None = None  # that trains
        self._fetched: deque[tuple[DataLoader[Any], object]] = deque(maxlen=_AHEAD)
        self._fed: list[DataLoader[Any]] = []  # a loader for each backward that a fetch preceded
        self._is_fed = self._stepping = False
        self._roots: list[weakref.ref[Tensor]] = []  # on which backward was called in this step
        self._refused = self._late = self._clock = 0
        self._copies = TensorCopies()
        self._tracer = Tracer(self._fail)
        self.writes = Writes(self._tracer, self._trained)
        self._returns = Returns()
        self._rollouts = Rollouts()
        self._own: tuple[Site, FrameType] | None = None  # the function that gives a library losses
        self._progress = Progress()
        self._handles = listen(self)
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it listens no longer."""
        return self._closed

    @property
    def autocast(self) -> Autocast:
        """Whether steps run with autocast on around them."""
        proofs = [site.capture.proof for site in self.sites.values()]
        return next((proof.autocast for proof in proofs if proof is not None), {})

    @property
    def loader(self) -> DataLoader[Any] | None:
        """The loader that feeds the steps, not one that was asked for a batch once."""
        counts = Counter(id(each) for each in self._fed)
        if not counts or counts.most_common(1)[0][1] < 0.3 * self.timeline.steps:
            return None
        return next(each for each in self._fed if id(each) == counts.most_common(1)[0][0])

    def close(self) -> None:
        """Listen no longer; the recording ends. Safe to call twice."""
        if not self._closed:
            self._closed = True
            self._progress.clear()
            self.writes.stop()
            self._tracer.stop()
            self.start.stop_looking()
            for handle in reversed(self._handles):
                handle.remove()

    # What torch tells.

    def backward_begins(
        self, roots: Sequence[Tensor], weights: Sequence[Tensor | None], frame: FrameType
    ) -> None:
        """Look at the step that has led here."""
        if self._is_deaf or not roots or not roots[0].requires_grad:
            return
        self._thread = threading.get_ident()
        self._pause_if_enough()
        try:
            self.writes.backward_begins()
            self._backward(roots, weights, frame)
        except Exception as error:
            self._fail(error)

    def backward_ended(self) -> None:
        """Look at the gradients of an update that is not an optimizer's."""
        if self._is_deaf:
            return
        if not self.timeline.optimized:
            self.own.backward_ended()
        self.writes.backward_ended(scaled=self.timeline.is_scaled)

    def process_begins(self) -> None:
        """Remember that training may go on elsewhere."""
        self.processes += 1

    def clipped(self, norm: float) -> None:
        """Remember the norm."""
        if not self._is_deaf:
            self.writes.known()
            self.timeline.clipped(norm)

    def clipped_by_value(self) -> None:
        """Remember that it happens."""
        self.by_value = True

    def scaled(self, scaler: GradScaler) -> None:
        """Remember the scaler."""
        if not self._is_deaf:
            self.timeline.scaled(scaler)

    def step_begins(self) -> None:
        """Take the changes of weights from now on for the optimizer's."""
        self._stepping = True
        if not self._is_deaf:
            self.writes.step_begins()

    def stepped(self, optimizer: Optimizer) -> None:
        """Remember who steps after which backward."""
        self._stepping = False
        if not self._is_deaf:
            self._roots.clear()
            self.timeline.stepped(optimizer, step_line(sys._getframe(1)))  # noqa: SLF001
            self.writes.stepped(optimizer)
            limit = "" if self._steps is None else f"/{self._steps}"
            self._progress.show(f"recording step {self.timeline.steps}{limit}")

    def fetched(self, loader: DataLoader[Any], batch: object) -> None:
        """Remember the batch: the step that follows may be fed by it."""
        if not self._is_deaf:
            self._pause_if_enough()
            self._fetched.append((loader, batch))
            self._is_fed = True

    @property
    def _is_deaf(self) -> bool:
        return self._closed or self._thread not in (None, threading.get_ident())

    def _trained(self) -> list[Tensor]:
        """Return what optimizers hold."""
        return [
            parameter
            for optimizer in self.start.optimizers
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]

    def _pause_if_enough(self) -> None:
        enough = self._steps is not None and self.timeline.steps >= self._steps
        now = time.monotonic()
        over = enough or now > self._deadline
        proofs = [site.capture.proof for site in self.sites.values()]
        proven = bool(proofs) and all(proof is not None for proof in proofs)
        self._late += over
        is_slow = not self.timeline.steps and now <= self._deadline + _GRACE * self._seconds
        done = over and not is_slow and (proven or self._late >= _PATIENCE)
        if self.failure is not None or self._refused >= _TRIES or done:
            self._pause(self)

    def _fail(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
            self._tracer.stop()

    # A backward.

    def _backward(
        self, roots: Sequence[Tensor], weights: Sequence[Tensor | None], frame: FrameType
    ) -> None:
        if not self.start.kept:
            self.start.keep()
            self._deadline = time.monotonic() + self._seconds
        self._clock += 1
        looks = not self.timeline.optimized and not self._stepping
        if looks and self.own.backward_begins(self.start.parameters()):
            self._roots.clear()
            self.timeline.stepped(self.own)
        try:
            site, at = self._locate(roots[0], frame)
        except NotRecognisedError as error:
            self._refuse((None, hash(str(error))), error)
            return
        if any(root() is roots[0] for root in self._roots):
            self.repeated.add(site.place)
            return
        self._roots.append(weakref.ref(roots[0]))
        key = site.key
        if key in self.refusals:
            self._refuse(key, self.refusals[key])
            return
        if self._is_fed:
            self._fed.append(self._fetched[-1][0])
            self._is_fed = False
        if key in self.sites:
            total = [r if w is None else (r * w).sum() for r, w in zip(roots, weights, strict=True)]
            self._again(self.sites[key], at, total)
        else:
            try:
                self._meet(key, site, at)
            except Exception as error:
                if site.otherwise is None and not isinstance(error, NotRecognisedError):
                    raise
                self._refuse(key, site.otherwise or error)
                return
        self.timeline.backward(key)
        seen = self.sites[key]
        if seen.capture.carries:
            self._tracer.notice_calls(self._rollouts)
        self._rollouts.backward()
        seen.frame, seen.names = at, None if is_module_level(at) else dict(at.f_locals)

    def _locate(self, root: Tensor, frame: FrameType) -> tuple[Site, FrameType]:
        """Where the loss is computed: by the caller, or by a function that a library has called."""
        try:
            found = locate(frame)
            self.otherwise = found[0].otherwise
        except NotRecognisedError as error:
            found, self.otherwise = None, error
        if self.otherwise is not None:
            if self._own is None:
                self._tracer.notice_returns(self._returns.notice)
            self._own = self._returns.origin(root) or self._own
            self._returns.forget()
            if self._own is not None:
                self.otherwise = None
                return self._own
        if found is None:
            assert self.otherwise is not None
            raise self.otherwise
        return found

    def _refuse(self, key: Key, error: Exception) -> None:
        self._refused += 1
        self.refusals[key] = error
        self.timeline.backward(key)

    def _meet(self, key: Key, site: Site, frame: FrameType) -> None:
        """A backward at a new place; with an optimizer that is new, too, another training."""
        if self.start.is_outdated:
            self._begin_anew()
        steps = plan(site, frame)
        capture = StepCapture(
            steps, self._copies, self.start.modules, self._delivered, self._rollouts
        )
        capture.keeps_random = self._last is not None
        self._tracer.follow(capture, frame)
        row = capture.first(frame)
        first = None if row is None else (self.timeline.steps, row)
        self.sites[key] = Seen(site, capture, frame, first=first)

    def _begin_anew(self) -> None:
        self.start.keep_anew()
        self.sites.clear()
        self._fed.clear()
        self.timeline = Timeline()

    def _again(self, seen: Seen, frame: FrameType, roots: Sequence[Tensor]) -> None:
        """A backward at a place that is followed."""
        row = seen.capture.close(roots)
        if seen.capture.replaced:  # another model is trained here, after one that is done
            seen.capture.replaced = False
            self._begin_anew()
            self.sites[seen.site.key] = seen
            seen.rows.clear()
            seen.steps.clear()
        if row is None:
            return
        seen.rows.append((self._clock, row))
        seen.steps.append(self.timeline.steps)
        if self._last is not None:  # several rows of one step: batches that are accumulated
            old = sum(step < self.timeline.steps - self._last for step in seen.steps)
            del seen.rows[:old], seen.steps[:old]
        if seen.capture.proof is None:
            loss = self._unscaled(seen.site, frame, roots)
            seen.capture.prove(row, frame, loss, self.start.parameters())
        full = self._copies.bytes > MOST_BYTES or len(seen.rows) >= MOST_BATCHES
        if (
            full
            and self._last is None
            and all(site.capture.proof is not None for site in self.sites.values())
        ):
            self._tracer.stop()

    def _unscaled(self, site: Site, frame: FrameType, roots: Sequence[Tensor]) -> Tensor:
        """The loss as the script computed it, before backward multiplied anything on top."""
        name = dotted(site.loss)
        value = None if name is None else look_up(name, visible(frame))
        if isinstance(value, Tensor) and value.requires_grad:
            return value
        total = roots[0] if len(roots) == 1 else sum(roots[1:], roots[0])
        scaler = self.timeline.scaler if site.scaled else None
        return total if scaler is None else total / scaler.get_scale()

    def _delivered(self) -> list[object]:
        return [batch for _, batch in reversed(self._fetched)]
