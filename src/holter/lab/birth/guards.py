"""Guards: one operation of the script is kept from what it cannot be given.

A logarithm gets at least epsilon, a root as well, a denominator is kept from zero, an exponential
and the gradient that a script computes itself get more bits or smaller operands, a spread is that
of the samples themselves, an empty mean is zero, and so is a CTC loss that has no alignment. If a
failure is gone then, the operation needs a safe form; a smaller step would only postpone it.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from holter.lab.birth.sources import is_hidden, shortened
from holter.lab.changes import Altered, TappedChange
from holter.record.births import Birth
from holter.record.trials import TrialKind, TrialName

_SMALL = 1e-3  # times what is typical of a denominator: the least that it may be
_FLOOR, _SHARE = 1e-3, 0.1  # of operands that left their domain, and of what is typical of them


def _epsilon(tensor: Tensor) -> float:
    return torch.finfo(tensor.dtype).eps


def _positive(tensor: Tensor) -> Tensor:
    return tensor.clamp_min(_epsilon(tensor))


def _above_minus_one(tensor: Tensor) -> Tensor:
    return tensor.clamp_min(_epsilon(tensor) - 1)


def _above_one(tensor: Tensor) -> Tensor:
    return tensor.clamp_min(1 + _epsilon(tensor))


def _within_one(tensor: Tensor) -> Tensor:
    return tensor.clamp(_epsilon(tensor) - 1, 1 - _epsilon(tensor))


def _probability(tensor: Tensor) -> Tensor:
    return tensor.clamp(_epsilon(tensor), 1 - _epsilon(tensor))


def _well_above(tensor: Tensor, typical: float) -> Tensor:
    """Keep an operand well above 0, by a share of what is typical of it."""
    return tensor.clamp_min(max(min(_SHARE * typical, _FLOOR), _epsilon(tensor)))


def _away_from_zero(tensor: Tensor) -> Tensor:
    """Keep a denominator from zero, by a small part of what is typical of it."""
    if not tensor.is_floating_point():  # a count
        return torch.where(tensor == 0, 1, tensor)
    sizes = tensor.detach().abs()
    ordinary = sizes[sizes.isfinite() & (sizes > 0)]
    typical = float(ordinary.median()) if ordinary.numel() else 0.0
    floor = max(_epsilon(tensor), _SMALL * typical)
    return torch.where(sizes < floor, torch.full_like(tensor, floor).copysign(tensor), tensor)


def _wider(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.dtype is torch.float32 else tensor.float()


def _in_range(tensor: Tensor) -> Tensor:
    """Keep exponents so small that products and ratios of the results are finite."""
    return tensor.clamp_max(math.log(torch.finfo(tensor.dtype).max) / 2)


def _unmasked(tensor: Tensor) -> Tensor:
    return tensor.clamp_min(torch.finfo(tensor.dtype).min / 2)


def _spread(func: Callable[..., Tensor], args: Any, kwargs: dict[str, Any]) -> Tensor:
    """The spread of the samples themselves, which a single one has."""
    named = {key: each for key, each in kwargs.items() if key not in ("correction", "unbiased")}
    plain = tuple(each for each in args if not isinstance(each, bool))  # which is `unbiased`
    found = func(*plain, **named, correction=0)
    return found.clamp_min(_epsilon(found))


def _or_zero(func: Callable[..., Tensor], args: Any, kwargs: dict[str, Any]) -> Tensor:
    """The mean, or zero where there is nothing to take it of."""
    found = func(*args, **kwargs)
    return torch.where(found.isfinite(), found, torch.zeros_like(found))


def _aligned(func: Callable[..., Tensor], args: Any, kwargs: dict[str, Any]) -> Tensor:
    """The CTC loss without the samples that have no alignment."""
    named = dict(zip(_CTC_ARGUMENTS, args, strict=False))
    return func(**{**named, **kwargs, "zero_infinity": True})


def _of_size(_func: Callable[..., Tensor], args: Any, kwargs: dict[str, Any]) -> Tensor:
    """The logarithm of the size of a determinant, whatever its sign."""
    found: Tensor = torch.linalg.slogdet(*args, **kwargs).logabsdet
    return found


_CTC_ARGUMENTS = (
    *("log_probs", "targets", "input_lengths", "target_lengths"),
    *("blank", "reduction", "zero_infinity"),
)
_Guard = Callable[[Tensor], Tensor]
_GUARDS: dict[str, _Guard] = {
    **dict.fromkeys(("log", "log2", "log10", "xlogy", "sqrt", "rsqrt", "pow"), _positive),
    **dict.fromkeys(("lgamma", "digamma"), _positive),
    **dict.fromkeys(("acos", "asin", "atanh", "erfinv"), _within_one),
    **dict.fromkeys(("div", "reciprocal", "remainder", "fmod"), _away_from_zero),
    **dict.fromkeys(("exp", "expm1", "exp2", "sinh", "cosh"), _wider),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp"), _unmasked),
    "log1p": _above_minus_one,
    "acosh": _above_one,
    "logit": _probability,
}
_CALLS: dict[str, Callable[..., Tensor]] = {  # operations that are called in another way
    **dict.fromkeys(("std", "var"), _spread),
    **dict.fromkeys(("mean", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss"), _or_zero),
    "ctc_loss": _aligned,
    "logdet": _of_size,
}
# An overflow is no fault of the operation: its operands are too large, and a guard hides that.
_FAULTY = (
    *("log of zero", "zero by zero", "division by zero", "root at zero", "zero norm"),
    *("outside domain", "exp overflow", "masked row", "half range"),
)
_SECOND = ("div", "xlogy", "remainder", "fmod")  # guarded in their second operand
# Beside the operation of a birth on the same line, these are kept in their domain as well: the root
# of a variance is 0 before it is that of a negative number.
_BESIDE = ("log", "log2", "log10", "sqrt", "rsqrt", "div", "reciprocal")
_ALIASES = {  # what Python calls, and the operation that torch makes of it
    **dict.fromkeys(("truediv", "itruediv", "idiv", "divide", "true_divide"), "div"),
    **dict.fromkeys(("rtruediv", "rdiv"), "reciprocal"),
    "ipow": "pow",
    "rpow": "pow",
    "cross_entropy": "nll_loss",
    "arccos": "acos",
    "arcsin": "asin",
    "arctanh": "atanh",
    "arccosh": "acosh",
    "mod": "remainder",
}


class OperationGuard:
    """The guard of the operation in which something was born that is not finite."""

    def __init__(self, birth: Birth) -> None:
        self.operation, self.where = birth.operation, birth.where
        self.calls = 0  # that were guarded
        self._left = birth.kind == "outside domain"
        self._has_beside = birth.is_singular and birth.operation in _BESIDE
        self._typical: dict[str, float] = {}  # operand, the largest of all calls: on its way to 0
        self._widens = birth.kind == "overflow"
        # A loss that is finite at these exponents has a gradient that is.
        self._bounds = birth.kind == "exp overflow" and birth.is_in_own_backward
        self.change = TappedChange(
            TrialName(TrialKind.GUARDED, self.operation),
            f"Keep {self.operation} at {self.where} from operands that it cannot be given.",
            self._entered,
        )

    @staticmethod
    def exists_for(birth: Birth) -> bool:
        """Whether there is a guard for the operation of a birth."""
        if not birth.where:
            return False
        if birth.kind == "overflow":
            return birth.is_in_own_backward
        if birth.operation in ("ctc_loss", "logdet"):
            return True
        if birth.kind == "empty mean":
            return birth.operation in _CALLS
        # In half precision a power may be too large, which is an overflow as well.
        too_large = birth.kind == "half range" and birth.operation == "pow"
        return birth.operation in _GUARDS and birth.kind in _FAULTY and not too_large

    @contextmanager
    def _entered(self, altered: Altered) -> Iterator[None]:
        with _GuardingMode(self, altered) as mode, _in_own_backwards(mode):
            yield

    def called(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call, guarded if it is one of those that are."""
        name = getattr(func, "__name__", "")
        plain = name.strip("_")
        operation = _ALIASES.get(plain, plain)
        beside = self._has_beside and operation in _BESIDE and operation != self.operation
        if not (beside or operation == self.operation) or not self._is_here():
            return func(*args, **kwargs)
        if beside:
            return func(*self._kept_inside(operation, args), **kwargs)
        if self._widens:
            self.calls += 1
            return func(*(_wider(each) if _is_float(each) else each for each in args), **kwargs)
        if self.operation in _CALLS:
            self.calls += 1
            return _CALLS[self.operation](func, args, kwargs)
        return func(*self._guarded(name, args), **kwargs)

    def _guarded(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what a call is given instead."""
        place = 1 if self.operation in _SECOND else 0
        if place >= len(args):
            return args
        given = args[place]
        if not isinstance(given, Tensor):
            if given != 0 or self.operation not in ("div", "remainder", "fmod"):
                return args
            self.calls += 1
            return (*args[:place], 1, *args[place + 1 :])
        if not given.is_floating_point() and self.operation != "div":
            return args
        self.calls += 1
        safe = self._safe(given)
        if name.endswith("_") and not name.startswith("_") and place == 0:  # changed in place
            args[0].data.copy_(safe.detach())
            return args
        return (*args[:place], safe, *args[place + 1 :])

    def _kept_inside(self, operation: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what another operation of the line is given, if its operand left its domain."""
        place = 1 if operation in _SECOND else 0
        given = args[place] if place < len(args) else None
        if not isinstance(given, Tensor) or not given.is_floating_point():
            return args
        divides = operation in ("div", "reciprocal")
        outside = given == 0 if divides else given <= 0
        typical = self._known(operation, given)
        if not bool(outside.any()):
            return args
        self.calls += 1
        safe = _away_from_zero(given) if divides else _well_above(given, typical)
        return (*args[:place], safe, *args[place + 1 :])

    def _known(self, operation: str, given: Tensor) -> float:
        """Return the size that is typical of an operand, over all calls."""
        sizes = given.detach().abs()
        finite = sizes[sizes.isfinite()]
        known = self._typical.get(operation, 0.0)
        if finite.numel():
            known = self._typical[operation] = max(known, float(finite.median()))
        return known

    def _safe(self, given: Tensor) -> Tensor:
        """Return an operand within the domain.

        An operand that passed through zero, as a learned variance does, is kept well away from it:
        next to zero its loss is finite and out of all proportion.
        """
        guard = _in_range if self._bounds else _GUARDS[self.operation]
        if guard is not _positive or not self._left:
            return guard(given)
        return _well_above(given, self._known(self.operation, given))

    def _is_here(self) -> bool:
        """Whether the innermost frame of the script is at the line of the birth."""
        frame: FrameType | None = sys._getframe(3)  # noqa: SLF001
        while frame is not None and is_hidden(frame.f_code.co_filename):
            frame = frame.f_back
        return frame is not None and (
            f"{shortened(frame.f_code.co_filename)}:{frame.f_lineno}" == self.where
        )


class _GuardingMode(TorchFunctionMode):
    """Sees every call of torch's functions and operators."""

    def __init__(self, guard: OperationGuard, altered: Altered) -> None:
        super().__init__()
        self._guard, self._altered = guard, altered

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = self._guard.calls
        result = self._guard.called(func, args, kwargs or {})
        if self._guard.calls > before:
            self._altered()
        return result


@contextmanager
def _in_own_backwards(mode: TorchFunctionMode) -> Iterator[None]:
    """Let a mode see what `backward()` of the script's own functions calls: torch leaves it out."""
    originals = {
        function: vars(function)["backward"]
        for function in _subclasses(torch.autograd.Function)
        if "backward" in vars(function) and not function.__module__.startswith("torch.")
    }

    def seen(original: Any) -> Any:
        def backward(*args: Any) -> Any:
            with mode:
                return original.__func__(*args)

        return staticmethod(backward)

    for function, original in originals.items():
        if isinstance(original, staticmethod):
            function.backward = seen(original)
    try:
        yield
    finally:
        for function, original in originals.items():
            function.backward = original


def _subclasses(of: type[Any]) -> Iterator[type[Any]]:
    for each in of.__subclasses__():
        yield each
        yield from _subclasses(each)


def _is_float(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
