"""Attendant: sees the last steps of a script that runs again, changes them, or traces one."""

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.data import DataLoader

from holter.lab.birth.births import birth
from holter.lab.birth.owners import Owner, identity, owned
from holter.lab.birth.running import Course, one_by_one
from holter.lab.birth.tracing import Trace
from holter.lab.birth.values import extent
from holter.lab.replay.outcomes import gradient_norm
from holter.record.births import Birth
from holter.record.trials import UNCHANGED
from holter.record.typed import from_json, to_json
from holter.scripts.recognition.sources import script_line, step_line
from holter.scripts.reruns.changing import change_of
from holter.scripts.reruns.holding import HeldNumber
from holter.scripts.reruns.numbers import NumberSurvey, SeenNumber
from holter.scripts.reruns.values import ValueTrace
from holter.watching.blackbox.shadow import held_by
from holter.watching.listening.closures import closure_of
from holter.watching.taps import Tap
from holter.watching.taps.autograd import tap_backward

if TYPE_CHECKING:
    from holter.watching.watch import Watch

RESULT = "rerun.json"


@dataclass(frozen=True, slots=True)
class Rerun:
    """What is done in one more run of a script; steps before `first` are left alone."""

    first: int
    last: int  # after which the run ends
    change: str = UNCHANGED  # made from `first` on
    skips: tuple[int, ...] = ()  # steps whose update is not made
    traced: int | None = None  # the step whose operations are watched, and what comes before it
    guarded: Birth | None = None  # whose operation the change guards
    values: str = ""  # follows the lines of the script to the origin of an "input" or "setting"
    surveyed: int | None = None  # the step from which on the numbers of the script are followed
    held: tuple[HeldNumber, ...] = ()  # that the change holds
    begins: int | None = None  # the step from which on it is made, if not from `first` on
    in_process: bool = False  # loaders fetch here, not in workers: what a data set does is seen


@dataclass(frozen=True, slots=True)
class Attended:
    """What was seen of a rerun, besides its recording."""

    norms: Mapping[str, float] = field(default_factory=dict)  # gradient norms, by step
    first_bad: int | None = None  # the step that made the first value that is not finite
    met: int | None = None  # the step in which it was met, which is the one to trace
    altered: int = 0  # times that the change altered something
    error: str = ""  # what ended the script early
    birth: Birth | None = None
    numbers: tuple[SeenNumber, ...] = ()  # of the script that have changed


def attended(folder: Path) -> Attended | None:
    """Return what was seen of a rerun, or None if its process did not get so far."""
    try:
        return from_json(Attended, json.loads((folder / RESULT).read_text()))
    except (OSError, ValueError):
        return None


class Attendant:
    """Attends one run of a script in its own process, and ends it when enough was seen.

    A step belongs to the optimizer's update that ends it. What the script does between an update
    and the next backward pass belongs to the step of that backward pass, so that a value that was
    spoiled between steps is found in the trace of the step that meets it.
    """

    def __init__(self, order: Rerun) -> None:
        self._order = order
        self._at = -1  # the step that is under way
        self._backward_of = -1  # the step of the last backward pass
        self._changing = contextlib.ExitStack()
        self._altered, self._has_begun, self._is_changed = 0, False, False
        self._begins = order.first if order.begins is None else order.begins
        self._norms: dict[str, float] = {}
        self._first_bad: int | None = None
        self._met: int | None = None
        self._spoiled: set[int] = set()  # identities of what was not finite before
        self._trace: Trace | None = None
        self._birth: Birth | None = None
        self._scale = 0.0  # of the loss of the last backward pass, by a GradScaler
        self._scaled: float = 0.0  # of a loss that was scaled and not yet differentiated
        self._samples: int | None = None  # in the last batch that a model was given
        self._stepped_at = self._backward_at = ""
        self._has_optimizer = False
        self._values: ValueTrace | None = None
        self._survey: NumberSurvey | None = None

    def attend(self, watch: "Watch", end: Callable[[], NoReturn]) -> None:
        """Listen to the training that `watch` records; `end` ends the process."""
        self._watch, self._end = watch, end
        # All taps stay until the process ends.
        tap_backward(self._around_backward, minds_grad=watch.trains_by_hand)
        if self._order.in_process:
            Tap(DataLoader, "__iter__", _without_workers)
        Tap(GradScaler, "scale", self._around_scale)
        Tap(GradScaler, "step", self._around_scaler_step)
        hook: Any = self._before_update
        register_optimizer_step_pre_hook(hook)
        register_optimizer_step_post_hook(lambda *_: self._after_update())
        nn.modules.module.register_module_forward_pre_hook(self._given)
        self._arrive()
        if self._order.values:
            self._values = ValueTrace(lambda: self._watch.coming_step, self._rates)
            self._values.begin()

    def _rates(self) -> list[float]:
        groups = [group for optimizer in self._optimizers() for group in optimizer.param_groups]
        return [float(group["lr"]) for group in groups if "lr" in group]

    def close(self, folder: Path, error: BaseException | None) -> None:
        """Write what was seen."""
        if self._values is not None:
            sys.settrace(None)
            self._birth = self._values.birth(of_setting=self._order.values == "setting")
        if self._survey is not None:
            self._survey.end()
        if self._trace is not None and self._birth is None and isinstance(error, Exception):
            with contextlib.suppress(Exception):  # it was raised for another reason
                self._tell(Course(error=error))
        seen = Attended(
            self._norms,
            self._first_bad,
            self._met,
            self._altered,
            "" if error is None else f"{type(error).__name__}: {error}".partition("\n")[0],
            self._birth,
            () if self._survey is None else self._survey.told,
        )
        (folder / RESULT).write_text(json.dumps(to_json(seen)))

    # What torch tells.

    def _around_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            self._arrive()
            self._backward_of, self._scale, self._scaled = self._at, self._scaled, 0.0
            if not isinstance(tensors, Tensor | tuple | list):
                tensors = tuple(tensors)  # a generator can be read once only
            if self._survey is not None:
                self._survey.look(sys._getframe(1))  # noqa: SLF001
            if self._trace is not None:
                self._backward_at = script_line(sys._getframe(1))  # noqa: SLF001
            if self._is_near:
                roots = [tensors] if isinstance(tensors, Tensor) else list(tensors)
                self._look([root for root in roots if isinstance(root, Tensor)])
            result = original(tensors, *args, **kwargs)
            if self._is_near:
                self._see_gradients()
            if not self._has_optimizer and self._order.traced == self._at + 1:
                self._begin_trace()  # the update that follows is not announced
            return result

        return backward

    def _around_scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(scaler: GradScaler, outputs: Any) -> Any:
            self._scaled = scaler.get_scale() if scaler.is_enabled() else 0.0
            return original(scaler, outputs)

        return scale

    def _around_scaler_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._arrive()  # the scaler may have skipped the optimizer
            return result

        return step

    def _before_update(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._has_optimizer = True
        if self._survey is not None:
            self._survey.look_at_options(optimizer)
        evaluates = closure_of(args, kwargs) is not None  # forward and backward passes of its own
        if self._trace is not None:
            self._trace.updating = not evaluates
            self._stepped_at = step_line(sys._getframe(1)) or self._stepped_at  # noqa: SLF001
        if self._backward_of in self._order.skips and not evaluates:
            self._altered += 1
            for parameter in held_by(optimizer):
                parameter.grad = None  # such an update leaves weights and optimizer as they are

    def _after_update(self) -> None:
        if self._trace is not None:
            self._trace.updating = False
        if self._is_near:
            self._look(())
        self._arrive()

    def _given(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Remember how many samples a model is given in training."""
        if not (torch.is_grad_enabled() and self._at >= self._order.first - 1):
            return
        if self._at == self._order.traced:  # the first step: nothing was trained before
            self._begin_trace()
        if any(model.module is module for model in self._watch.roster.models):
            batches = [each for each in args if isinstance(each, Tensor) and each.dim() > 1]
            self._samples = len(batches[0]) if batches else None

    # What follows.

    @property
    def _is_near(self) -> bool:
        """Whether the training has come to the steps that are looked at."""
        return self._at >= self._order.first

    def _arrive(self) -> None:
        """Begin what is due at the step that is under way now."""
        step = self._watch.coming_step
        if step == self._at:
            return
        self._at = step
        if step > self._order.last:
            self._leave()
        if step >= self._order.first and not self._has_begun:
            self._has_begun = True
            self._spoiled = {identity(each) for _, each in self._owned() if _is_wrong(each)}
        if step >= self._begins and not self._is_changed and self._order.change != UNCHANGED:
            self._is_changed = True
            change = change_of(self._order.change, self._order.guarded, self._order.held)
            self._changing.enter_context(change.entered(self._count))
        if self._order.surveyed is not None and step >= self._order.surveyed and not self._survey:
            self._survey = NumberSurvey(lambda: self._watch.coming_step)
            self._survey.begin()
        if step == self._order.traced and self._watch.roster.subjects:
            self._begin_trace()

    def _count(self) -> None:
        self._altered += 1

    def _begin_trace(self) -> None:
        if self._trace is None:
            roster = self._watch.roster
            models = {model.label: model.module for model in roster.models}
            optimizers = self._optimizers()
            bottom = self._begin_trace.__code__
            # What a data set does to a sample has no axis of samples.
            samples = None if self._order.in_process else self._samples
            self._trace = Trace(models, optimizers, samples=samples, bottom=bottom)
            self._changing.enter_context(one_by_one(optimizers))
            self._trace.__enter__()

    def _optimizers(self) -> list[Optimizer]:
        found = (subject.optimizer() for subject in self._watch.roster.subjects)
        return [optimizer for optimizer in found if optimizer is not None]

    def _owned(self) -> Iterator[tuple[Owner, Tensor]]:
        models = {model.label: model.module for model in self._watch.roster.models}
        return owned(models, self._optimizers())

    def _look(self, roots: list[Tensor] | tuple[()]) -> None:
        """Look for values that are not finite in losses, or else in weights and moments."""
        with _disable_current_modes():
            wrong = [root for root in roots if _is_wrong(root)]
            state: list[tuple[Owner | None, Tensor]] = [
                (owner, each)
                for owner, each in self._owned()
                if identity(each) not in self._spoiled and _is_wrong(each)
            ]
            # An update that no optimizer makes is seen at the next backward pass.
            late = bool(state and roots) and not self._has_optimizer
            if wrong:
                course = Course([(None, wrong[0])], of_loss=True, scale=self._scale)
                self._failed(course, late=late)
            elif state:
                self._failed(Course(state), late=late)

    def _see_gradients(self) -> None:
        """Measure the gradient; a scaler skips one that is not finite, which is its business."""
        with _disable_current_modes():
            gradients = [p.grad for p in self._watch.roster.parameters if p.grad is not None]
            dense = [each for each in gradients if each.layout is torch.strided]
            norm = gradient_norm(dense)
            if math.isfinite(norm):
                self._norms[str(self._at)] = norm
            elif not self._scale:
                self._failed(Course([(None, each) for each in dense if _is_wrong(each)]))

    def _failed(self, course: Course, *, late: bool = False) -> None:
        step = max(self._backward_of, self._order.first)
        if step in self._order.skips:  # whose update is not made
            return
        if self._first_bad is None:
            self._first_bad, self._met = max(step - late, 0), step
        if self._trace is not None:
            self._tell(course)
            self._leave()

    def _tell(self, course: Course) -> None:
        """Find the birth of what is not finite."""
        trace = self._trace
        assert trace is not None
        with _disable_current_modes():
            self._birth = birth(trace, course, self._stepped_at, self._backward_at)

    def _leave(self) -> NoReturn:
        if self._trace is not None:
            self._trace.__exit__(None, None, None)
        self._end()


def _without_workers(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let a loader fetch its samples in this process, in the same order."""

    def iterate(loader: Any) -> Any:
        if loader.num_workers:
            loader.num_workers, loader.timeout, loader.prefetch_factor = 0, 0, None
        return original(loader)

    return iterate


def _is_wrong(tensor: Tensor) -> bool:
    return extent(tensor.detach()) is not None
