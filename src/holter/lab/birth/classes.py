"""Classes of births: from what an operation was given to why its output is not finite."""

import math
from dataclasses import dataclass

from holter.lab.birth.calls import not_finite
from holter.lab.birth.descent import Origin
from holter.lab.birth.events import Detail, TracedOperation
from holter.lab.birth.operations import (
    BOUNDED,
    DIVISIONS,
    EDITS,
    EXPONENTIALS,
    LOGARITHMS,
    MEANS,
    NORMALISATIONS,
    ROOTS,
    SOFTMAXES,
    SPREADS,
    meant,
    of_node,
)

KINDS = (
    *("log of zero", "zero by zero", "division by zero", "root at zero", "zero norm"),
    *("outside domain", "exp overflow", "overflow", "half range", "masked row", "empty mean"),
    *("zero times infinity", "infinity minus infinity"),
    *("bad input", "spoiled weights", "in-place edit", "bad setting", "unknown"),
)
_RECENT = 3  # operations before a sum among which an exponential counts
_SUMMED = ("add", "clamp", "clamp_min", "maximum", "expand", "repeat")  # may stand behind a norm


@dataclass(frozen=True, slots=True)
class Class:
    """What kind of birth it is, and the reason in a few words."""

    kind: str
    why: str
    headroom: float | None = None


def classify(event: TracedOperation, origin: Origin) -> Class:
    """Why the output of an event is not finite."""
    outside = origin.outside
    if outside is not None:
        if outside.owner.role == "constant" and event.operation in EDITS and event.in_place:
            return Class("in-place edit", f"{outside.extent.says} is written into it")
        if outside.owner.role == "memory":
            return Class("unknown", "no operation of torch has written it")
        if outside.owner.role in ("input", "constant"):
            return Class("bad input", f"it holds {outside.extent.says} before any operation")
        return Class("spoiled weights", f"it holds {outside.extent.says} before the step")
    if event.constant and event.operation in EDITS and event.phase != "update":
        return Class("in-place edit", f"{event.extent.says} is written into it")
    detail = event.detail
    if detail is None:
        return Class("unknown", "what it was given is not known")
    return (
        _of_setting(event, detail)
        or _of_determinant(event)
        or _of_mask(event)
        or _of_precision(event, detail)
        or _of_gradient(event, detail)
        or _of_operation(event.operation, detail)
        or _of_range(event, detail)
    )


def _of_setting(event: TracedOperation, detail: Detail) -> Class | None:
    """A number that an optimizer computes from its settings: a learning rate, as a rule."""
    if event.phase != "update" or not event.constant:
        return None
    name, value = next(not_finite(detail.settings))
    return Class("bad setting", f"a setting of the optimizer is not finite, {name} = {value:g}")


def _of_determinant(event: TracedOperation) -> Class | None:
    if meant(event.operation, event.site.line) != "logdet":
        return None
    return Class("outside domain", "logdet of a matrix with a negative determinant")


def _of_mask(event: TracedOperation) -> Class | None:
    """Infinities that were meant as a mask, or as a limit."""
    if not event.parents or event.fresh:
        if event.constant and event.operation == "mul":
            return Class("zero times infinity", "a factor is infinite, and the other is 0")
        return None
    masked = all(parent.extent.only_below for parent in event.parents)
    softmax = event.operation in SOFTMAXES | {"logsumexp"}
    softmax = softmax or of_node(event.site.node) in SOFTMAXES | {"logsumexp"}
    if masked and (softmax or (event.operation == "sub" and len(event.parents) > 1)):
        return Class("masked row", "a whole row is masked, all of it is -inf")
    if masked and event.operation in ("nll_loss", "gather", "index"):
        return Class("log of zero", "what is asked for is masked: its probability is 0")
    if not event.extent.nan:
        return Class("bad input", "an infinity from outside of the step reaches the loss")
    if event.operation in ("mul", "mm", "bmm", "addmm", "baddbmm"):
        return Class("zero times infinity", "an infinite element meets 0")
    return Class("infinity minus infinity", "infinite elements meet")


def _of_precision(event: TracedOperation, detail: Detail) -> Class | None:
    """What would have been finite with more bits."""
    dtype = detail.glance.dtype
    narrow = dtype in ("float16", "bfloat16")
    largest = _largest(detail)
    headroom = largest / detail.limit if math.isfinite(largest) else None
    if narrow and detail.twin is not None and detail.twin.finite:
        reaches = f"{detail.twin.largest:.3g} in float32, {dtype} ends at {detail.limit:.6g}"
        return Class("half range", f"it would be {reaches}", headroom)
    if event.operation == "to" and narrow and detail.operands[0].dtype != dtype:
        reaches = f"{largest:.3g}, {dtype} ends at {detail.limit:.6g}"
        return Class("half range", f"it is cast from {reaches}", headroom)
    pairs = zip(detail.histories, detail.values, strict=True)
    lost = next((history.lost for history, value in pairs if history.lost and value == 0), 0.0)
    if lost:
        return Class("half range", f"the {lost:g} that was to keep it from 0 is 0 in {dtype}")
    return None


def _of_gradient(event: TracedOperation, detail: Detail) -> Class | None:
    """Gradients that are infinite by themselves, where the function has an end or a corner."""
    forward = of_node(event.site.node)
    if not forward:
        return None
    if forward in SPREADS:
        return Class("empty mean", "the spread of a single value has no gradient")
    zero = 0 in detail.values or (event.operation == "pow" and _base(detail) == 0)
    least = 0.0 if zero else _next_to_zero(event.operation, detail)
    if least is None:
        return None
    limit = f"is above {detail.limit:.3g}, where {detail.glance.dtype} ends"
    infinite = limit if least else "is infinite"
    if forward == "pow" and (_exponent(detail) or 0) <= -1:
        return Class("division by zero", "0 has no negative power")
    if forward in ROOTS:
        return Class("root at zero", f"the gradient of {forward} at {least:.3g} {infinite}")
    if forward in LOGARITHMS:
        return Class("log of zero", f"the gradient of {forward} at {least:.3g} {infinite}")
    if forward in BOUNDED:
        return Class(
            "outside domain", f"the gradient of {forward} at the end of its domain is infinite"
        )
    return None


def _next_to_zero(operation: str, detail: Detail) -> float | None:
    """Return a divisor, or the base of a power, that is so small that a quotient overflows."""
    if operation == "pow":
        small = _base(detail)
    else:
        small = detail.values[-1] if operation in DIVISIONS and detail.values else None
    return small if small and abs(small) < 1 / math.sqrt(detail.limit) else None


def _of_operation(operation: str, detail: Detail) -> Class | None:
    """What each operation cannot be given."""
    first = detail.values[0] if detail.values else None
    if operation in MEANS:
        return _mean(operation, detail)
    if operation in LOGARITHMS:
        return _logarithm(operation, detail.values[-1])
    if operation in DIVISIONS:
        return _division(operation, detail)
    if operation == "pow":
        return _power(detail)
    if operation in EXPONENTIALS:
        return Class("exp overflow", f"{operation} of {_shown(first)}")
    if operation in ("sqrt", "rsqrt") and first == 0:
        return Class("root at zero", f"{operation} of 0")
    if operation in BOUNDED | {"sqrt", "rsqrt"} and first is not None:
        return Class("outside domain", f"{operation} of {_shown(first)}")
    if operation in NORMALISATIONS and not detail.settings.get("eps"):
        return Class("zero by zero", "all values are the same, and eps is 0")
    return None


def _of_range(event: TracedOperation, detail: Detail) -> Class:
    """Operations that are defined everywhere, and ran out of range."""
    largest = _largest(detail)
    if event.constant or not math.isfinite(largest) or not largest:
        given = [f"{k} = {v:g}" for k, v in detail.settings.items() if isinstance(v, float)]
        return Class("unknown", f"with {', '.join(given)}" if given else "no reason was found")
    limit = f"{detail.glance.dtype} ends at {detail.limit:.3g}"
    if detail.twin is not None and detail.twin.finite:
        reaches = f"it would be {detail.twin.largest:.3g}"
    elif largest > math.sqrt(detail.limit):
        reaches = f"operands reach {largest:.3g}"
    elif event.operation == "ctc_loss":
        return Class("unknown", "there is no alignment: the input is too short for its target")
    else:
        return Class("unknown", f"operands reach {largest:.3g} only")
    chain = detail.histories[0].chain[:_RECENT] if detail.histories else ()
    if event.operation == "sum" and not EXPONENTIALS.isdisjoint(chain):
        return Class("exp overflow", f"a sum of exponentials, {reaches}, {limit}")
    return Class("overflow", f"{reaches}, {limit}", largest / detail.limit)


def _mean(operation: str, detail: Detail) -> Class | None:
    elements = math.prod(detail.operands[0].shape)
    if not elements:
        return Class("empty mean", "there is nothing to take the mean of")
    if operation in SPREADS and elements / detail.glance.of <= _correction(detail):
        return Class("empty mean", "a single value has no spread")
    if operation == "nll_loss":
        return Class("empty mean", "no target counts: all are ignored, or have no weight")
    return None


def _logarithm(operation: str, of: float | None) -> Class | None:
    if of is None:
        return Class("log of zero", "it is singular") if operation == "slogdet" else None
    given = of + 1 if operation == "log1p" else of
    if given == 0 or (operation == "logit" and given == 1):
        return Class("log of zero", f"{operation} of {_shown(of)}")
    if given < 0 or (operation == "logit" and given > 1):
        return Class("outside domain", f"{operation} of {_shown(of)}")
    return None


def _division(operation: str, detail: Detail) -> Class | None:
    *rest, below = detail.values
    above = 1.0 if operation == "reciprocal" else rest[-1] if rest else None
    chain = detail.histories[-1].chain
    if "other" in detail.settings:  # it is divided by a plain number
        below, above, chain = _number(detail.settings["other"]), below, ()
    if below != 0:
        small = None if "other" in detail.settings else _next_to_zero("div", detail)
        why = f"it is divided by {_shown(small)}"
        return None if small is None else Class("division by zero", why)
    if _is_norm(chain):
        return Class("zero norm", "the norm that it is divided by is 0")
    if above == 0:
        return Class("zero by zero", "0 is divided by 0")
    return Class("division by zero", "it is divided by 0")


def _is_norm(chain: tuple[str, ...]) -> bool:
    """Whether a tensor is a norm, written as one or by hand."""
    rest = [each for each in chain if each not in _SUMMED]
    return rest[:1] == ["norm"] or rest[:2] == ["sqrt", "sum"] or rest[:2] == ["pow", "sum"]


def _power(detail: Detail) -> Class | None:
    base, exponent = _base(detail), _exponent(detail)
    if base is None or exponent is None:
        return None
    if exponent < 0 and (base == 0 or _next_to_zero("pow", detail)):
        return Class("division by zero", f"{base:.3g} to the power of {exponent:g}")
    if base < 0 and exponent != int(exponent):
        return Class("outside domain", f"{base:g} to the power of {exponent:g}")
    return None


def _base(detail: Detail) -> float | None:
    return _number(detail.settings["self"]) if "self" in detail.settings else detail.values[0]


def _exponent(detail: Detail) -> float | None:
    if "exponent" in detail.settings:
        return _number(detail.settings["exponent"])
    return detail.values[-1]


def _shown(value: float | None) -> str:
    return "what it was given" if value is None else f"{value:.8g}"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _correction(detail: Detail) -> float:
    given = detail.settings.get("correction", 1)
    return float(given) if isinstance(given, int | float) else 1.0


def _largest(detail: Detail) -> float:
    """The largest finite element that the operation was given, by size."""
    ends = [abs(end) for operand in detail.operands for end in (operand.low, operand.high)]
    return max((end for end in ends if math.isfinite(end)), default=math.nan)
