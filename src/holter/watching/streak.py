"""Streak: light steps that go like the one before, of which only losses and times are kept.

Most steps of a training are read lightly, and differ from the last one in their loss and times
alone. In a streak, each of the four entries from torch (a backward begins and ends, an update
begins and ends) checks that this is so, and keeps a number or two. Rows are made of many steps at
once. Whatever else holter hears, and any check that fails, ends the streak: the state of the open
step is put where the ordinary way would have it, and the step goes on in that way.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from operator import attrgetter
from time import perf_counter
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.watching.blackbox.box import BlackBox
from holter.watching.collectors.clearing import Clearing, Watched
from holter.watching.collectors.hyperparameters import Hyperparameters
from holter.watching.collectors.lane import LightCollector
from holter.watching.collectors.losses import Losses
from holter.watching.collectors.memory import Memory
from holter.watching.collectors.modes import Modes
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.phases import Phases, compiled_graphs
from holter.watching.collectors.script_factors import ends_in_factor
from holter.watching.evaluating import Evaluation
from holter.watching.interludes import Heard, Interludes
from holter.watching.light_rows import ENTRIES, LightRows
from holter.watching.numbers import GroupNumbers
from holter.watching.recorder import LOOK, Recorder
from holter.watching.shield import Shield
from holter.watching.stepping import Stepper
from holter.watching.steps import Stage

_SHORTEST = 8  # steps that are known to be light: to begin costs as much as some steps
_TRAINING = attrgetter("training")
_NEEDED = (Losses, Phases, Clearing, Modes, Hyperparameters)


class Ordinary(Protocol):
    """Hears of each step in the ordinary way."""

    backwards: int

    def backward_begins(self, roots: Sequence[Tensor], whole: bool) -> None:
        """A backward begins."""

    def backward_ends(self) -> None:
        """A backward has returned."""

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        """An optimizer begins its step."""

    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """An optimizer has ended its step."""


class Streak:
    """Hears of light steps that go like the last one; others are heard in the ordinary way."""

    ordinary: Ordinary

    def __init__(
        self,
        recorder: Recorder,
        stepper: Stepper,
        shield: Shield,
        evaluation: Evaluation,
        *,
        interludes: Interludes,
        black_box: Callable[[], BlackBox | None],
        collectors: Mapping[type, LightCollector],
    ) -> None:
        self._interludes, self._progress = interludes, interludes.progress
        interludes.lose = self.lose
        self._recorder, self._stepper, self._shield = recorder, stepper, shield
        self._open = stepper.open
        self._home, self._entry, self._clock = shield.home, shield.entry, shield.clock
        self._evaluation, self._black_box = evaluation, black_box
        found: Mapping[type, Any] = collectors
        self.is_allowed = all(kind in found for kind in _NEEDED)
        self._losses: Losses = found.get(Losses, Losses())
        self._phases: Phases = found.get(Phases, Phases())
        self._clearing: Clearing = found.get(Clearing, Clearing())
        self._memory: Memory | None = found.get(Memory)
        self._rows = LightRows(recorder, stepper, collectors)
        self._entered = 0  # calls from torch when the last backward in the ordinary way began
        # What the steps of the streak have in common.
        self._box: BlackBox | None = None
        self._kind: type = type(None)  # of the last operation of the loss
        self._modules: list[nn.Module] = []
        self._modes: list[bool] = []
        self._optimizer: Callable[[], Optimizer | None] = lambda: None
        self._settings = GroupNumbers((), rates=False)
        self._rates: list[float] = []
        self._watched = Watched(torch.empty(0))
        self._graphs = 0  # compiled so far
        self._between = 0  # calls of a loader and a scheduler, from update to backward
        self._first = self._until = (
            0  # steps: the depth of the latter is chosen in the ordinary way
        )
        self._updates = self._memory_due = 0  # since memory was read, and when it is read again

    @property
    def is_on(self) -> bool:
        """Whether steps go like the one before."""
        return self._progress.is_on

    # The entries. They are busy in the same way as shielded calls.

    def backward_begins(self, roots: Sequence[Tensor], whole: bool) -> None:
        """See a backward begin, and by that the end of the step before."""
        progress = self._progress
        if progress.is_on and progress.heard is Heard.UPDATED and not self._home.is_left:
            began, shield, rows, root = perf_counter(), self._shield, self._rows, roots[0]
            shield.is_busy = True
            try:
                self._watched.look()
                if (
                    self._watched.is_cleared
                    and not progress.missing
                    and type(root.grad_fn) is self._kind
                    and list(map(_TRAINING, self._modules)) == self._modes
                    and len(roots) == 1
                    and whole
                    and root.is_cpu
                    and root.numel() == 1
                    and isfinite(loss := root.item())
                ):
                    clock = self._clock
                    spent = clock.spent
                    rows.losses.append(loss)
                    rows.spent.append(spent)
                    rows.marks.append(began - spent)
                    self._recorder.step += 1
                    self._open.stage, progress.heard = Stage.BACKWARD, Heard.BACKWARD
                    progress.is_fetched = progress.is_scheduled = False
                    clock.spent = spent + perf_counter() - began + self._entry
                    return
            except Exception as error:
                self.lose(error)
            finally:
                shield.is_busy = False
        self.ordinary.backward_begins(roots, whole)

    def backward_ends(self) -> None:
        """See a backward end."""
        progress = self._progress
        if progress.is_on and progress.heard is Heard.BACKWARD and not self._home.is_left:
            began, shield, clock = perf_counter(), self._shield, self._clock
            shield.is_busy = True
            try:
                self._rows.marks.append(began - clock.spent)
                self._watched.remember()
                progress.heard = Heard.GRADIENTS
                clock.spent += perf_counter() - began + self._entry
                return
            except Exception as error:
                self.lose(error)
            finally:
                shield.is_busy = False
        self.ordinary.backward_ends()

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        """See an update begin."""
        if self.awaits(optimizer) and len(args) < 2 and not kwargs and not self._home.is_left:
            began, shield, clock, box = perf_counter(), self._shield, self._clock, self._box
            shield.is_busy = True
            try:
                if self._are_known(optimizer):
                    self._rows.marks.append(began - clock.spent)
                    if box is not None and box.minds_updates:
                        box.before_update(self._recorder.step, optimizer)
                    self._progress.heard = Heard.UPDATE
                    clock.spent += perf_counter() - began + self._entry
                    return None
            except Exception as error:
                self.lose(error)
            finally:
                shield.is_busy = False
        return self.ordinary.before_step(optimizer, args, kwargs)

    def _are_known(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer has the numbers that are kept, perhaps since now."""
        groups = optimizer.param_groups
        rates: list[Any] = [group.get("lr") for group in groups]
        if rates != self._rates:
            if len(rates) != len(self._rates) or any(type(rate) is not float for rate in rates):
                return False
            self._rates = rates
            self._rows.rates.append((self._recorder.step, rates))
            if self._box is not None:
                self._box.rates_changed(rates)
        if self._settings.are_those_of(groups):
            return True
        self._settings = GroupNumbers(groups, rates=False)
        if not self._settings.are_those_of(groups):  # a tensor may be written to
            return False
        if self._box is not None:
            self._box.look_at_hyperparameters()
        return True

    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """See an update end; look at losses and write rows when there are enough."""
        progress = self._progress
        if progress.is_on and progress.heard is Heard.UPDATE and not self._home.is_left:
            began, shield, step = perf_counter(), self._shield, self._recorder.step
            shield.is_busy = True
            try:
                if (
                    optimizer is self._optimizer()
                    and step + 1 < self._until
                    and compiled_graphs() == self._graphs
                    and self._watched.begin()
                ):
                    self._updated(step, began)
                    return
            except Exception as error:
                self.lose(error)
            finally:
                shield.is_busy = False
        self.ordinary.after_step(optimizer, args, kwargs)

    def _updated(self, step: int, now: float) -> None:
        clock, rows, box, progress = self._clock, self._rows, self._box, self._progress
        rows.marks.append(now - clock.spent)
        self._open.stage, progress.heard = Stage.UPDATED, Heard.UPDATED
        progress.missing = self._between
        self._updates += 1
        if self._updates == self._memory_due and self._memory is not None:
            self._memory.skip(self._updates - 1)
            rows.read_memory(self._memory)
            self._updates, self._memory_due = 0, self._memory.until_read + 1
        if box is not None:
            box.updated(step, again=True)
        if len(rows.losses) - rows.looked > LOOK and rows.look(box):
            self._alert()
        if now > rows.write_at and not rows.write(now):
            self._alert()
        clock.spent += perf_counter() - now + self._entry

    def _alert(self) -> None:
        self._until = 0
        self._stepper.alert()

    def awaits(self, optimizer: Optimizer) -> bool:
        """Whether the update of an optimizer is all that is awaited."""
        progress = self._progress
        is_next = progress.is_on and progress.heard is progress.before_update
        return is_next and optimizer is self._optimizer()

    # The beginning and the end.

    def backward_began(self, roots: Sequence[Tensor]) -> None:
        """See a backward begin in the ordinary way: the last step may be like those to come."""
        entered, self._entered = self._entered, self._shield.calls
        if (
            self._entered - entered == ENTRIES + self._interludes.calls
            and self._open.depth is Depth.LIGHT
            and self.is_allowed
            and not self._shield.is_on_cuda
        ):
            self._begin(roots)
        self._interludes.forget()

    def _begin(self, roots: Sequence[Tensor]) -> None:
        """Begin with the open step, if the last was plain and it is like that so far."""
        stepper, evaluation, loss = self._stepper, self._evaluation, self._losses.single
        box, subjects, step = self._black_box(), stepper.roster.subjects, self._recorder.step
        between, rows = self._interludes, self._rows
        until = stepper.next_deep(step + 1)
        if until < step + _SHORTEST or evaluation.is_on or evaluation.undecided:
            return
        if loss is None or not isfinite(loss) or not self._phases.is_plain or len(subjects) != 1:
            return
        if (box is not None and box.may_interrupt) or ends_in_factor(roots[0]):
            return
        watched, optimizer = self._clearing.single(subjects[0]), subjects[0].optimizer()
        row = rows.common(
            fetched=bool(between.fetched),
            clipped=bool(between.clipped),
            scheduled=bool(between.scheduled),
        )
        if watched is None or optimizer is None or row is None or not stepper.repeats():
            return
        rates: list[Any] = [group.get("lr") for group in optimizer.param_groups]
        if not rows.has_rates(row, rates) or not between.begin(rows, step):
            return
        if not self._recorder.look():  # in the order of steps
            stepper.alert()
            return
        self._kind, self._watched, self._optimizer = (
            type(roots[0].grad_fn),
            watched,
            subjects[0].optimizer,
        )
        self._modules = [model.module for model in stepper.roster.models]
        self._modes = list(map(_TRAINING, self._modules))
        self._settings = GroupNumbers(optimizer.param_groups, rates=False)
        self._rates, self._between = rates, between.fetched + between.scheduled
        if box is not None:
            box.look_at_hyperparameters()
        self._box, self._graphs, self._first, self._until = box, compiled_graphs(), step, until
        self._updates = self._memory_due = 0
        if self._memory is not None:
            self._memory_due = self._memory.until_read + 1
        rows.begin(row, loss, rates=rates, spent=self._clock.spent)
        self._progress.heard = Heard.BACKWARD
        self._progress.is_on, self._shield.settle = True, self.settle

    def settle(self) -> None:
        """End the streak: put what is known of the open step where the ordinary way has it."""
        if self._progress.is_on:
            self._progress.is_on, self._shield.settle = False, None
            try:
                self._settle()
            except Exception as error:
                self.lose(error)

    def lose(self, error: Exception) -> None:
        """Have no streaks any more, because of an error."""
        was_on, self._progress.is_on, self._shield.settle = self._progress.is_on, False, None
        self.is_allowed = False
        if was_on:
            with contextlib.suppress(Exception):
                self._settle()
        self._shield.fail("a streak of light steps", error)

    def _settle(self) -> None:
        heard, step, rows = self._progress.heard, self._open, self._rows
        subject, marks = self._stepper.roster.subjects[0], rows.open_marks
        backwards = self._recorder.step - self._first
        following = self._interludes.settle(rows, backwards)
        # As if all entries of the open step had come in the ordinary way.
        others = self._interludes.calls + (heard is Heard.CLIPPING)
        self._entered = self._shield.calls - len(marks) - others
        self.ordinary.backwards += backwards
        self._optimizer, self._modules = lambda: None, []
        step.began = marks[0] + rows.spent[-1]
        self._shield.cost.spent = self._clock.spent - rows.spent[-1]
        self._losses.resume(rows.losses[-1])
        given = rows.batches[len(rows.losses) - 1][2] if rows.loader else None
        self._phases.resume(rows.updated, marks, given=given, following=following)
        at_update, unused = heard >= Heard.CLIPPING, heard >= Heard.GRADIENTS
        self._clearing.resume(subject, self._watched, at_update=at_update, unused=unused)
        if self._memory is not None:
            self._memory.skip(self._updates)
        if heard is Heard.UPDATED or heard >= Heard.CLIPPING:
            step.read.add(subject)
            rows.put_back(at_update=heard is Heard.UPDATED or heard is Heard.UPDATE)
        if heard is Heard.UPDATE and self._box is not None:
            self._box.resume(self._recorder.step)
        if heard is Heard.UPDATED:
            step.stepped.append(subject)
        is_odd = rows.look(self._box)
        if not rows.write(perf_counter()) or is_odd:
            self._stepper.alert()
