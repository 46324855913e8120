"""ClosureListener: closures that an optimizer calls several times in one step."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from holter.watching.collectors.roster import Subject
from holter.watching.loop import Loop
from holter.watching.shield import shielded

Closure = Callable[[], Any]


class ClosureListener:
    """Lets collectors read the first call of a closure, and counts the others.

    LBFGS evaluates the closure at several weights in one step. The loss and the gradients of a step
    are those at the weights with which it begins, as for every other optimizer.
    """

    def __init__(self, loop: Loop) -> None:
        self.shield = loop.shield
        self._loop, self._open = loop, loop.stepper.open
        self._counted: _Counted | None = None

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        """Return the arguments of `optimizer.step()` with the closure counted, if there is one."""
        closure = closure_of(args, kwargs)
        if closure is None:
            return None
        made: list[_Counted] = []  # none where the shield lets nothing through
        self._count(optimizer, closure, made)
        counted = self._counted = made[0] if made else None
        if counted is None:
            return None
        if kwargs.get("closure") is closure:
            return args, {**kwargs, "closure": counted}
        return tuple(counted if given is closure else given for given in args), kwargs

    @shielded
    def _count(self, optimizer: Optimizer, closure: Closure, made: "list[_Counted]") -> None:
        subject = self._loop.stepper.roster.subject_of(optimizer)
        if subject is not None:
            made.append(_Counted(closure, self, subject))

    def after_step(self) -> None:
        """Publish how often the closure was called, if there was one."""
        counted, self._counted = self._counted, None
        if counted is not None:
            self._publish(counted.calls)

    @shielded
    def _publish(self, calls: int) -> None:
        lane = self._loop.stepper.lane
        lane.tell(lane.at_closure, calls)

    @shielded
    def first_call_ends(self, subject: Subject) -> None:
        """Read the gradients of the first call: the next one clears them."""
        self._loop.stepper.gradients_ready(subject)

    def call_again(self, closure: Closure) -> Any:
        """Call a closure at weights that are not those of the step, and record nothing of it."""
        began = self._open.began
        with self._loop.paused():
            result = closure()
        self._open.began = began  # unlike a pause, the call is part of the step's time
        return result


class _Counted:
    """A closure that knows how often it was called."""

    def __init__(self, closure: Closure, listener: ClosureListener, subject: Subject) -> None:
        self._closure, self._listener, self._subject = closure, listener, subject
        self._written = _writes(subject)
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        # Some optimizers, such as SAM, move the weights before the first call.
        if self.calls > 1 or _writes(self._subject) != self._written:
            return self._listener.call_again(self._closure)
        result = self._closure()
        self._listener.first_call_ends(self._subject)
        return result


def closure_of(args: Any, kwargs: Any) -> Closure | None:
    """Return the closure given to `optimizer.step()`; hooks see the optimizer as first argument."""
    if not kwargs and len(args) < 2:  # as for nearly all optimizers
        return None
    given: Closure | None = kwargs.get("closure")
    if given is not None:
        return given
    return next((argument for argument in args[1:] if callable(argument)), None)


def _writes(subject: Subject) -> list[int]:
    parameters: tuple[Tensor, ...] = subject.parameters[: subject.held]
    return [parameter._version for parameter in parameters]  # noqa: SLF001
