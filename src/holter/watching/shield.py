"""Shield: keeps errors of holter out of the training, and measures what its calls cost."""

import functools
import statistics
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
import torch

from holter.record.events import HolterFailed
from holter.record.notices import tell
from holter.watching.collectors.lane import Clock
from holter.watching.forks import home
from holter.watching.recorder import Recorder

_P = ParamSpec("_P")
_TRIALS = 17
_WORK = 1 << 17  # numbers: as many bytes as the caches of a core have
_WAYS = 2  # a tap or hook is such a call around the call
_CAPTURED = (
    "Training steps were captured in a CUDA graph: no Python code sees them when they are"
    " replayed, and they are not recorded."
)


@dataclass(slots=True)
class Cost:
    """Seconds that holter has spent on the open step, and `ahead` on the one after it."""

    spent: float = 0.0
    ahead: float = 0.0
    effort: float = 0.0  # processor time, measured only while the allowance lasts
    is_generous: bool = True  # the allowance lasts: waiting for a busy machine is no effort

    def was_ahead(self, seconds: float) -> None:
        """Move the cost of preparing the next step to that step."""
        self.spent -= seconds
        self.ahead += seconds

    def step_ended(self, is_generous: bool) -> None:
        """Begin the next step with what was spent on it ahead."""
        self.spent, self.ahead, self.effort = self.ahead, 0.0, 0.0
        self.is_generous = is_generous


class Shield:
    """The guard of one watch: whether it still listens, what it costs, what has failed."""

    def __init__(self, recorder: Recorder) -> None:
        self.cost = Cost()
        self.clock = Clock()
        self.notes: list[str] = []  # what could not be recorded; reports show it
        self.is_closed = False
        self.is_busy = False  # inside a call: what holter itself makes torch do is not recorded
        self.home = home()
        self.is_on_cuda = False  # what is watched
        self.calls = 0  # of shielded methods
        self.settle: Callable[[], None] | None = None  # what has to be done before any other
        self.entry = 0.0  # seconds that a call costs beside those it can measure of itself
        self._recorder = recorder
        self.entry = _entry(self)

    def is_capturing(self) -> bool:
        """Whether a CUDA graph is being captured: what we did now would become a part of it."""
        if not torch.cuda.is_current_stream_capturing():
            return False
        if _CAPTURED not in self.notes:
            self.notes.append(_CAPTURED)
        return True

    def fail(self, where: str, error: Exception) -> None:
        """Record an internal error, and print the first of its kind."""
        trace = "".join(traceback.format_exception(error))
        self._recorder.event(HolterFailed(where, repr(error), trace))
        sentence = f"{where} failed ({error!r}); training continues without it"
        if sentence not in self.notes:
            self.notes.append(sentence)
            tell(sentence + ".")


class Shielded(Protocol):
    """Has a shield."""

    shield: Shield


_S = TypeVar("_S", bound=Shielded)


def shielded(
    method: Callable[Concatenate[_S, _P], None],
) -> Callable[Concatenate[_S, _P], None]:
    """Make a method safe for torch to call.

    It never raises into training, its time is measured, and it does nothing once the watch is
    closed, in a forked process, inside another shielded call, or while a CUDA graph is captured.
    """

    @functools.wraps(method)
    def guarded(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        shield = self.shield
        if shield.is_closed or shield.is_busy or shield.home.is_left:
            return
        if shield.is_on_cuda and shield.is_capturing():
            return
        cost, clock = shield.cost, shield.clock
        clock.entered = began = perf_counter()
        busy = thread_time() if cost.is_generous else 0.0
        shield.is_busy = True
        shield.calls += 1
        if shield.settle is not None:
            shield.settle()
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            shield.fail(method.__name__, error)
        finally:
            shield.is_busy = False
            spent = perf_counter() - began + shield.entry
            cost.spent += spent
            clock.spent += spent
            if busy:
                cost.effort += thread_time() - busy

    return guarded


class _Nothing:
    """Something that torch might call."""

    def __init__(self, shield: Shield) -> None:
        self.shield = shield

    @shielded
    def happens(self) -> None:
        """Do nothing."""


def _entry(shield: Shield) -> float:
    """Return what it costs to enter and to leave a shielded call, and the tap that leads to it.

    Between two calls a training fills the caches, and so do the trials: with warm ones a call takes
    a fraction of the time.
    """
    nothing, costs = _Nothing(shield), []
    work = np.zeros(_WORK)
    for _ in range(_TRIALS):
        work += 1
        shield.cost = Cost(is_generous=False)
        began = perf_counter()
        nothing.happens()
        costs.append(perf_counter() - began - shield.cost.spent)
    shield.cost = Cost()
    return _WAYS * max(statistics.median(costs), 0.0)
