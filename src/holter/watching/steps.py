"""Steps: the open step of a training, what is read of it, and its end."""

import contextlib
import functools
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Concatenate, ParamSpec, TypeVar

import torch

from holter.record.events import HolterFailed
from holter.record.notices import tell
from holter.watching.blackbox import BlackBox
from holter.watching.budget import Budget
from holter.watching.collectors import Collector
from holter.watching.collectors.calls import silence
from holter.watching.collectors.moments import (
    AfterUpdate,
    Attended,
    BackwardEnds,
    Depth,
    GradientsReady,
    Joined,
    Logged,
    LossComputed,
    Moment,
    NonfiniteReplaced,
    StepEnds,
    ValidationLoss,
)
from holter.watching.collectors.roster import Roster, Subject
from holter.watching.loss_scale import LossScale
from holter.watching.publishing import Publisher
from holter.watching.recorder import Recorder, Settle

_P = ParamSpec("_P")
_S = TypeVar("_S", bound="Steps")

_OF_FORWARD = (LossComputed, NonfiniteReplaced, Attended)  # moments that come before a backward


def shielded(
    method: Callable[Concatenate[_S, _P], None],
) -> Callable[Concatenate[_S, _P], None]:
    """What torch calls: never raises into training, times itself, is deaf once closed or forked."""

    @functools.wraps(method)
    def guarded(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        if self.closed or self._busy or os.getpid() != self._process:
            return
        began = time.perf_counter()
        busy = time.thread_time() if self._is_generous else 0.0
        self._busy = True
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self._fail(method.__name__, error)
        finally:
            self._busy = False
            self._spent += time.perf_counter() - began
            if busy:
                self._effort += time.thread_time() - busy

    return guarded


class Steps:
    """Keeps the open step: how deep it is read, who was updated in it, what it has cost."""

    def __init__(
        self, recorder: Recorder, collectors: Iterable[Collector], *, budget: float | None
    ) -> None:
        self.roster = Roster()
        self.notes: list[str] = []
        self.closed = False
        self.blackbox: BlackBox | None = None
        self.is_deaf = False  # whether a backward is of no interest
        self._recorder, self._budget = recorder, Budget(budget)
        self._publisher = Publisher(collectors, self._fail)
        self._depth = self._next_depth = Depth.FULL  # of the open step, and of the one after it
        self._began: float | None = None  # when the open step began
        self._device = torch.device("cpu")  # of the first parameter
        self._process = os.getpid()
        self._busy = False
        self._spent = self._spent_ahead = 0.0  # for the open step, and for the one after it
        self._is_generous = True  # while the allowance lasts: then the processor's time counts
        self._effort = 0.0
        self._in_step = False  # a backward or an update of the open step has been seen
        self._is_half_seen = False  # some of the open step went by before it was read
        self._has_passed = False  # since the last backward that was told, a step was not read
        self._stepped: list[Subject] = []  # optimizers stepped in the open step
        self._read: set[Subject] = set()  # those whose gradients of the step were read
        self._loss_scale = LossScale()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While it lasts nothing that torch tells is part of the training."""
        before = self.closed, self.is_deaf, self.blackbox
        self.closed, self.is_deaf, self.blackbox = True, False, None
        try:
            with silence():
                yield
        finally:
            self.closed, self.is_deaf, self.blackbox = before
            self._began = None  # the pause is no part of a step

    @property
    def minds_backward_ends(self) -> bool:
        """Whether anybody looks at what backward left of the open step."""
        return self._publisher.hears(BackwardEnds, self._depth)

    @property
    def minds_losses(self) -> bool:
        """Whether anybody looks at losses of the step whose forward this is."""
        return self._publisher.hears(LossComputed, self._forward_depth)

    @property
    def minds_forward(self) -> bool:
        """Whether the step whose forward this is will be read whole."""
        return self._forward_depth is Depth.FULL

    @property
    def _forward_depth(self) -> Depth:
        """How deep to read what comes before a backward: after an update, it is the next step's."""
        return self._next_depth if self._stepped else self._depth

    @property
    def _is_ahead(self) -> bool:
        """Whether what happens now is of a step whose first backward is still to come."""
        return bool(self._stepped) or not self._in_step

    def _publish(self, moment: Moment) -> None:
        # What follows an update may prepare the next step, too.
        kind = type(moment)
        if self._depth is Depth.NONE and (kind is ValidationLoss or kind is Logged):
            self._notice(afterwards=kind is ValidationLoss)
        depth, ahead = self._depth, False
        if kind is AfterUpdate or kind is Joined:
            depth = max(depth, self._next_depth)
        elif kind in _OF_FORWARD:
            depth, ahead = self._forward_depth, bool(self._stepped)
        self._publisher.publish(moment, depth, on_gpu=self._device.type == "cuda", ahead=ahead)

    def _notice(self, *, afterwards: bool) -> None:
        """Read a step after all, of which some has gone by; a validation is of the step before."""
        self._depth, self.is_deaf, self._is_half_seen = Depth.LIGHT, False, True
        if afterwards and self._has_passed:
            self._recorder.step -= 1
            self._stepped = list(self.roster.subjects)

    def _publish_forward(self, moment: Moment) -> None:
        """Publish what belongs to the step whose forward this is: its time is that step's, too."""
        began = time.perf_counter()
        self._publish(moment)
        if self._stepped:
            took = time.perf_counter() - began
            self._spent, self._spent_ahead = self._spent - took, self._spent_ahead + took

    def _gradients_ready(self, subject: Subject) -> None:
        if subject in self._read:
            return
        self._read.add(subject)
        if not self._publisher.hears(GradientsReady, self._depth):
            return
        scale = self._loss_scale.of(subject.optimizer(), self._device)
        self._publish(GradientsReady(subject, scale))

    def _end_step(self, *, in_eval: bool = False) -> None:
        self._publish(StepEnds(self._stepped, in_eval, not self._is_half_seen))
        now = time.perf_counter()
        if self._depth > Depth.LIGHT:
            hooks = self._publisher.spent_in_hooks()
            self._spent, self._effort = self._spent + hooks, self._effort + hooks
        readings, events = self._publisher.take()
        settle = self._settlement(now)
        self._spent, self._spent_ahead = self._spent_ahead, 0.0
        self._is_generous, self._effort = self._budget.is_generous, 0.0
        self._began, self._depth = now, self._next_depth
        self._stepped, self._in_step, self._is_half_seen = [], False, False
        self.is_deaf = self._depth is Depth.NONE
        self._read.clear()
        self._loss_scale.step_ended()
        if not self._recorder.write_step(readings, events, settle):
            self._budget.alert(self._recorder.step)

    def _passed_by(self) -> bool:
        """Leave a step that is not read, if it was updated; whether the next one is to be read."""
        if self._stepped:
            self._recorder.step += 1
            self._stepped, self._in_step = [], False
            self._began, self._depth = time.perf_counter(), self._next_depth
        self.is_deaf = self._depth is Depth.NONE
        return not self.is_deaf

    def _settlement(self, now: float) -> Settle:
        """What the step that ends has cost, once it is known how long the device worked for it."""
        depth, spent, began = self._depth, self._spent, self._began
        effort = self._effort if self._is_generous else spent

        def settle(worked: float, hidden: bool) -> float:
            # A host that runs ahead of its GPU has time to spare.
            cost = worked if hidden else max(spent, worked)
            if began is not None:
                length = max(now - began - cost, 0.0)
                self._budget.account(depth, cost, length, effort=min(effort, cost))
            return cost

        return settle

    def _fail(self, where: str, error: Exception) -> None:
        trace = "".join(traceback.format_exception(error))
        self._recorder.event(HolterFailed(where, repr(error), trace))
        sentence = f"{where} failed ({error!r}); training goes on without it"
        if sentence not in self.notes:
            self.notes.append(sentence)
            tell(sentence + ".")
