"""The graph of the loss: gradients where the model cuts them off, a term of the loss left out."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from holter.lab.changes import Altered, TappedChange
from holter.lab.changes._hooks import around_models, around_steps, is_training
from holter.record.trials import TrialKind, TrialName
from holter.watching.taps import Tap

_CUTS = (Tensor.detach, Tensor.data.__get__)  # type: ignore[attr-defined]
_SUMS = ("__add__", "__radd__", "__iadd__", "__sub__", "__rsub__", "__isub__")
_OWN = (__file__, sys.modules[Tap.__module__].__file__)

Place = tuple[str, int, int]  # file, offset in the code, operand of an addition


class _Uncut(TorchFunctionMode):
    """Lets results of operations keep their gradients where they would be cut off."""

    def __init__(self, altered: Altered) -> None:
        super().__init__()
        self._altered = altered

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _CUTS and args[0].grad_fn is not None and is_training():
            self._altered()
            return args[0]
        return func(*args, **(kwargs or {}))


def _uncut(altered: Altered) -> AbstractContextManager[None]:
    def entered(_: nn.Module) -> AbstractContextManager[Any]:
        return _Uncut(altered) if is_training() else nullcontext()

    return around_models(entered)


CUTS_OFF = TappedChange(
    TrialName(TrialKind.CUTS_OFF),
    "Let gradients pass where the model's `forward` detaches a result.",
    _uncut,
)


def _is_term(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() == 0 and value.requires_grad


def _place(operand: int) -> Place:
    """Return where the script adds two terms: the nearest code that is not holter's."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame.f_code.co_filename in _OWN and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lasti, operand


def _as_zero(term: Tensor) -> Tensor:
    return torch.nan_to_num(term, 0.0, 0.0, 0.0) * 0.0


def _hidden(term: Tensor) -> Tensor:
    return term - term.detach()


@contextmanager
def _with_term(number: int, change: Callable[[Tensor], Tensor], altered: Altered) -> Iterator[None]:
    """Change one term: the one that is the `number`-th to be added in the script.

    Terms are scalars with gradients. A sum of terms is none itself.
    """
    places: list[Place] = []
    sums: list[Tensor] = []  # of the step so far

    def kept(term: Tensor, operand: int) -> Tensor:
        if any(term is total for total in sums):
            return term
        place = _place(operand)
        if place not in places:
            places.append(place)
        if places.index(place) != number - 1:
            return term
        altered()
        return change(term)

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def added(one: Any, other: Any) -> Any:
            if not (_is_term(one) and _is_term(other) and is_training()):
                return original(one, other)
            total = original(kept(one, 0), kept(other, 1))
            sums.append(total)
            return total

        return added

    with ExitStack() as stack:
        for name in _SUMS:
            stack.callback(Tap(Tensor, name, around).remove)
        stack.enter_context(around_steps(before=lambda _: sums.clear()))
        yield


def without_term(number: int) -> TappedChange:
    """Leave out the `number`-th of the terms that are added to make the loss."""
    return TappedChange(
        TrialName(TrialKind.TERM_OFF, str(number)),
        f"Leave out term {number} of the loss, in the order in which the script adds them.",
        partial(_with_term, number, _as_zero),
    )


def hidden_term(number: int) -> TappedChange:
    """Train the `number`-th of the terms of the loss, but leave it out of the loss recorded."""
    return TappedChange(
        TrialName(TrialKind.TERM_HIDDEN, str(number)),
        f"Report the loss without its term {number}, which is trained as before.",
        partial(_with_term, number, _hidden),
    )
