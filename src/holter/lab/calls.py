"""The calls that a step makes to the model and to torch's loss functions: observed or changed."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.lab.batches import same_memory, tensors
from holter.lab.inapplicable import InapplicableError
from holter.lab.randomness import same_randomness
from holter.lab.setup import Batch, Setup
from holter.watching.taps import LOSS_FUNCTIONS, Tap

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of the model as a training step makes it."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any


@dataclass(frozen=True, slots=True)
class LossEvaluation:
    """A call of one of torch's loss functions; `arguments` by name, with their defaults."""

    function: str
    arguments: Mapping[str, Any]
    value: Tensor


def model_call(setup: Setup, batch: Batch) -> ModelCall:
    """Return the first call of the model in the forward pass on `batch`."""
    calls: list[ModelCall] = []

    def remember(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        calls.append(ModelCall(args, kwargs, output))

    handle = setup.entry.register_forward_hook(remember, with_kwargs=True)
    try:
        with same_randomness(setup), torch.no_grad():
            setup.loss(batch)
    finally:
        handle.remove()
    if not calls:
        raise InapplicableError("the step calls parts of the model, not the model itself")
    return calls[0]


def with_entry(setup: Setup, batch: Batch) -> Setup:
    """Return the setup with the part of the model that its step calls, if it calls no more.

    Modules of Lightning are seldom called themselves: their step calls `self.net`. A part counts if
    it holds all parameters of the model.
    """
    whole = list(map(id, setup.model.parameters()))
    holders = [part for part in setup.model.modules() if list(map(id, part.parameters())) == whole]
    called: set[nn.Module] = set()
    handles = [
        holder.register_forward_pre_hook(lambda module, _: called.add(module)) for holder in holders
    ]
    try:
        with same_randomness(setup), torch.no_grad():
            setup.loss(batch)
    finally:
        for handle in handles:
            handle.remove()
    entry = next((holder for holder in holders if holder in called), setup.model)
    return setup if entry is setup.model else replace(setup, called=entry)


def first_loss_call(setup: Setup, batch: Batch) -> LossEvaluation | None:
    """Return the first call of a torch loss function in the forward pass on `batch`, or None."""
    calls: list[LossEvaluation] = []
    with same_randomness(setup), torch.no_grad(), _losses(lambda *same: same[1:], calls):
        setup.loss(batch)
    return calls[0] if calls else None


def own_targets(setup: Setup, batch: Batch) -> list[Tensor]:
    """Return the tensors of a batch that the model is not given."""
    call = model_call(setup, batch)
    given = tensors((call.args, call.kwargs))
    return [
        tensor
        for tensor in tensors(batch)
        if not any(same_memory(tensor, other) for other in given)
    ]


@contextmanager
def inputs_replaced(
    model: nn.Module, change: Callable[[tuple[Any, ...], dict[str, Any]], Arguments]
) -> Iterator[None]:
    """Apply `change` to the arguments of the model inside."""
    handle = model.register_forward_pre_hook(
        lambda _, args, kwargs: change(args, kwargs), with_kwargs=True, prepend=True
    )
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def targets_replaced(change: Callable[[str, Tensor], Tensor]) -> Iterator[None]:
    """Apply `change` to the targets of torch's loss functions inside.

    It gets the function's name and the targets.
    """

    def replaced(original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        names = list(_parameters(original))
        place = names.index("target") if "target" in names else len(args)
        if place < len(args):
            return (
                *args[:place],
                change(original.__name__, args[place]),
                *args[place + 1 :],
            ), kwargs
        if "target" in kwargs:
            return args, {**kwargs, "target": change(original.__name__, kwargs["target"])}
        return args, kwargs

    with _losses(replaced, []):
        yield


@contextmanager
def predictions_replaced(change: Callable[[str, Mapping[str, Any]], Tensor]) -> Iterator[None]:
    """Replace the predictions that torch's loss functions are given inside.

    `change` gets the function's name and its arguments by name.
    """

    def replaced(original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        named = {**dict(zip(_parameters(original), args, strict=False)), **kwargs}
        made = change(original.__name__, named)
        return ((made, *args[1:]), kwargs) if args else (args, {**kwargs, "input": made})

    with _losses(replaced, []):
        yield


@contextmanager
def arguments_replaced(
    change: Callable[[str, Mapping[str, Any]], Mapping[str, Any]],
) -> Iterator[None]:
    """Replace arguments of torch's loss functions inside.

    `change` gets the function's name and its arguments by name, and returns the new ones.
    """

    def replaced(original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        named = {**dict(zip(_parameters(original), args, strict=False)), **kwargs}
        new = change(original.__name__, named)
        return ((), {**named, **new}) if new else (args, kwargs)

    with _losses(replaced, []):
        yield


@contextmanager
def losses_seen() -> Iterator[list[LossEvaluation]]:
    """Collect the calls of torch's loss functions inside."""
    calls: list[LossEvaluation] = []
    with _losses(lambda *same: same[1:], calls):
        yield calls


@contextmanager
def _losses(change: Callable[[Any, Any, Any], Any], calls: list[LossEvaluation]) -> Iterator[None]:
    """Tap the loss functions: change their arguments, and collect their calls."""
    inside = False

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:  # one loss function may call another: the outer one is the training's
                return original(*args, **kwargs)
            inside = True
            try:
                args, kwargs = change(original, args, kwargs)
                result = original(*args, **kwargs)
            finally:
                inside = False
            if isinstance(result, Tensor):
                known = _parameters(original)
                named = {**known, **dict(zip(known, args, strict=False)), **kwargs}
                calls.append(LossEvaluation(original.__name__, named, result))
            return result

        return called

    taps = [Tap(functional, name, around) for name in LOSS_FUNCTIONS if name in vars(functional)]
    try:
        yield
    finally:
        for tap in reversed(taps):
            tap.remove()


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a function in order, with their defaults or None."""
    parameters = inspect.signature(function).parameters
    empty = inspect.Parameter.empty
    return {name: None if p.default is empty else p.default for name, p in parameters.items()}
