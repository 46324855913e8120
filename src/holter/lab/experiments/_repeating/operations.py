"""The first operation of a step that gives another result when the step is repeated."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from holter.lab.birth.calls import Call, tensors_in
from holter.lab.birth.operations import UNFILLED, called
from holter.lab.birth.sources import CallSite, Sources
from holter.lab.experiments._repeating.comparing import Difference, difference, digest, total
from holter.record.events import OperationDiffered

_AGAIN = 16  # times that an operation is repeated to see whether it differs by itself


def first_difference(
    step: Callable[[], object], models: Mapping[str, nn.Module], *, repeats: int
) -> OperationDiffered | None:
    """Repeat a step, and return the first operation with another result; None if there is none.

    `step` restores the state of the training itself, so that each call does the same.
    """
    own = first_difference.__code__
    with _Operations(models, own) as first:
        step()
    for _ in range(repeats):
        with _Operations(models, own, first.digests) as again:
            step()
        if again.found is not None:
            return again.found
    return None


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hashes what every operation gives out, and compares it with the hashes of an earlier pass."""

    def __init__(
        self,
        models: Mapping[str, nn.Module],
        bottom: CodeType,
        expected: Sequence[tuple[str, int]] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.digests: list[tuple[str, int]] = []
        self.found: OperationDiffered | None = None
        self._expected = expected
        self._sources = Sources(models, bottom=bottom)
        self._stack = ExitStack()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes seconds

    def __enter__(self) -> "_Operations":
        self._stack.enter_context(self._sources)
        if "torch._dynamo" in sys.modules:  # compiled models are run as they are written
            self._stack.enter_context(torch.compiler.set_stance("force_eager"))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        self._stack.close()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = called(func)
        self._sources.remember(name)
        if func.is_view or name in UNFILLED or self.found is not None:
            return func(*args, **kwargs)
        call = Call.of(func, name, args, kwargs)
        before = {id(each): each.clone() for each in call.changed}
        result = func(*args, **kwargs)
        outputs = list(_numbers(result, call))
        place = len(self.digests)
        self.digests.append((name, hash(tuple(digest(each) for each in outputs))))
        if self._expected is not None and self._expected[place : place + 1] != [self.digests[-1]]:
            self.found = self._described(call, outputs, before)
        return result

    def _described(
        self, call: Call, outputs: Sequence[Tensor], before: Mapping[int, Tensor]
    ) -> OperationDiffered:
        site = self._sources.here(call.name)
        by_itself = Difference() if call.is_random else _by_itself(call, outputs, before)
        return OperationDiffered(
            operation=call.name,
            phase=_phase(site),
            where=site.where,
            line=site.line,
            module=site.module,
            cause="random" if call.is_random else "kernel" if by_itself else "input",
            elements=by_itself.elements,
            of=by_itself.of,
            ulps=by_itself.ulps,
        )


def _by_itself(call: Call, outputs: Sequence[Tensor], before: Mapping[int, Tensor]) -> Difference:
    """Repeat an operation on the same operands until it differs from itself."""
    worst = Difference()
    for _ in range(_AGAIN):
        copies: dict[int, Tensor] = {}

        def copied(value: Any, copies: dict[int, Tensor] = copies) -> Any:
            if isinstance(value, Tensor) and id(value) in before:
                return copies.setdefault(id(value), before[id(value)].clone())
            if isinstance(value, list | tuple):
                return type(value)(copied(each) for each in value)
            return value

        kwargs = {name: copied(value) for name, value in call.kwargs.items()}
        result = call.func(*copied(call.args), **kwargs)
        changed = tuple(copies.values())
        again = list(_unique([*_of_numbers(tensors_in(result)), *_of_numbers(changed)]))
        found = total(map(difference, outputs, again)) if len(again) == len(outputs) else worst
        worst = max(worst, found, key=lambda each: each.ulps)
    return worst


def _numbers(result: Any, call: Call) -> Iterator[Tensor]:
    """Yield what an operation gave out or changed, but for bytes, which are memory of its own."""
    yield from _unique([*_of_numbers(tensors_in(result)), *_of_numbers(call.changed)])


def _of_numbers(tensors: Any) -> Iterator[Tensor]:
    for each in tensors:
        if each.layout is torch.strided and each.dtype is not torch.uint8:
            yield each


def _unique(tensors: Sequence[Tensor]) -> Iterator[Tensor]:
    yield from {id(each): each for each in tensors}.values()


def _phase(site: CallSite) -> str:
    if site.node or site.derived:
        return "backward"
    return "update" if site.where.startswith("torch/optim/") else "forward"
