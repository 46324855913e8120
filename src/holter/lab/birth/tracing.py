"""Trace: watches every operation of a step, and notes those that give out what is not finite."""

import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode

from holter.lab.birth.calls import Call, tensors_in
from holter.lab.birth.events import Detail, Glance, History, Outside, Parent, Stage, TracedOperation
from holter.lab.birth.inheritance import inherited
from holter.lab.birth.operations import UNFILLED, called
from holter.lab.birth.owners import Owner, Role, elements, identity, owners
from holter.lab.birth.samples import SampleTracker
from holter.lab.birth.sources import Sources
from holter.lab.birth.values import Extent, bad, extent, fits, operand

_POSITIONS = 4
_CHAIN = 4  # operations back that a tensor's history is known
_RECENT = 256
_KEEPING_ZERO = ("sqrt", "to", "clone")
_CHOOSING = ("where", "cat", "stack", "index", "gather", "select", "slice", "view", "reshape")


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches the operations inside `with`; `bottom` is the function that the step is called by."""

    def __init__(
        self,
        models: Mapping[str, nn.Module],
        optimizers: Sequence[Optimizer],
        *,
        samples: int | None,
        bottom: CodeType,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.events: list[TracedOperation] = []
        self.operations = 0
        self.updating = False
        self._models, self._optimizers = models, optimizers
        self._owners = owners(models, optimizers)
        self._sources = Sources(models, bottom=bottom)
        self._batches = SampleTracker(samples, frozenset(self._owners))
        self._writers: dict[int, list[tuple[int, int, int]]] = {}  # event, first and last element
        self._held: dict[int, StorageWeakRef] = {}  # so that no identity is given twice
        self._histories: dict[int, History] = {}
        self._stack = ExitStack()
        self._recent: deque[int] = deque(maxlen=_RECENT)  # what was read last

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes seconds

    def __enter__(self) -> "Trace":
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
        self.operations += 1
        name = called(func)
        self._sources.remember(name)
        if func.is_view:
            self._hold(tensors_in(args))
            self._batches.seen(tensors_in(args))
            return func(*args, **kwargs)
        call = Call.of(func, name, args, kwargs)
        self._hold(call.tensors)
        before = {id(each): each.clone() for each in call.changed}
        result = func(*args, **kwargs)
        outputs = list({id(e): e for e in (*tensors_in(result), *call.changed)}.values())
        self._hold(outputs)
        self._follow(call, outputs)
        if name not in UNFILLED:
            found = [(output, its) for output in outputs if (its := extent(output)) is not None]
            if found:
                self._note(call, found, before)
        return result

    def writer(self, tensor: Tensor) -> int | None:
        """The latest event that put something into a tensor that is not finite."""
        first, last = _reach(tensor)
        for event, start, end in reversed(self._writers.get(identity(tensor), ())):
            if start <= last and first <= end:
                return event
        return None

    def last_read(self) -> int | None:
        """The event whose output was read last."""
        for storage in reversed(self._recent):
            if storage in self._writers:
                return self._writers[storage][-1][0]
        return None

    def _hold(self, tensors: Iterable[Tensor]) -> None:
        """Keep identities of tensors from being given again, as long as the trace lasts."""
        for each in tensors:
            key = identity(each)
            if key not in self._held:
                storage = elements(each).untyped_storage()
                self._held[key] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]

    def _follow(self, call: Call, outputs: Sequence[Tensor]) -> None:
        """Keep what is known of tensors that are finite, too."""
        self._recent.extend(identity(tensor) for tensor in call.tensors)
        self._batches.made(call.name, call.tensors, outputs, call.settings)
        first = next((tensor for tensor in call.tensors if tensor.is_floating_point()), None)
        past = History() if first is None else self._histories.get(identity(first), History())
        chain = (call.name, *past.chain[: _CHAIN - 1])
        kept = past.lost if call.name in _KEEPING_ZERO else 0.0
        if call.name in _CHOOSING:  # elements as they are, of any of them
            known = (self._histories.get(identity(tensor)) for tensor in call.tensors)
            kept = next((each.lost for each in known if each is not None and each.lost), 0.0)
        read = self._read(call)
        for output in outputs:
            lost = kept or _lost(call, output)
            self._histories[identity(output)] = History(chain, lost, read)

    def _read(self, call: Call) -> frozenset[int]:
        """The storages that the operands of an update were made of, with their own."""
        if not self.updating:
            return frozenset()
        keys = [identity(tensor) for tensor in call.tensors]
        past = (self._histories.get(key, History()).read for key in keys)
        return frozenset(keys).union(*past)

    def _note(
        self, call: Call, found: Sequence[tuple[Tensor, Extent]], before: Mapping[int, Tensor]
    ) -> None:
        """An operation gave out something that is not finite."""
        if self.updating:  # optimizers make their state at their first step
            self._owners |= owners(self._models, self._optimizers)
        output, its = found[0]
        wrong, news = inherited(call, output, before)
        # A number that is written into a tensor is news, too.
        old = [each for tensor, _, each in wrong if tensor.dim()]
        fresh = not any(each.nan for each in old) and (its.nan or not old)
        fresh = fresh or news is not None
        wanted = call.constant and its.only_below  # a mask
        shrinks = any(output.numel() < tensor.numel() for tensor in call.tensors)
        places = news if news is not None else bad(output, nan_only=its.nan and bool(wrong))
        site = self._sources.here(call.name)
        phase: Stage = "backward" if site.node or site.derived else "forward"
        event = TracedOperation(
            operation=call.name,
            phase="update" if self.updating else phase,
            site=site,
            extent=its,
            parents=tuple(self._parent(call, *each) for each in wrong),
            constant=call.constant,
            in_place=bool(call.changed),
            shrinks=shrinks,
            owner=self._owner_of(call),
            fresh=news is not None,
            detail=self._detail(call, output, places, before)
            if shrinks or (fresh and not wanted)
            else None,
        )
        for each, _ in found:
            key = identity(each)
            if key not in self._writers:
                self._writers[key] = []
            self._writers[key].append((len(self.events), *_reach(each)))
        self.events.append(event)

    def _parent(self, call: Call, tensor: Tensor, was: Tensor, its: Extent) -> Parent:
        writer = self.writer(tensor)
        if writer is not None:
            return Parent(writer, its)
        return Parent(self._outside(tensor, was, its, self._name(call, tensor)), its)

    def _outside(self, tensor: Tensor, was: Tensor, its: Extent, name: str) -> Outside:
        """What is known of a tensor that no operation of the step has made."""
        made_by = self._histories.get(identity(tensor), History()).chain[:1]
        unseen: Role = "memory" if UNFILLED.intersection(made_by) else "input"
        plain = Owner(unseen if tensor.dim() else "constant", name)
        owner = self._owners.get(identity(tensor), plain)
        glance = self._glance(tensor, bad(was), ())
        return Outside(owner, its, operand(owner.name, was), glance)

    def _owner_of(self, call: Call) -> Owner | None:
        """Whose a tensor is that the operation changes, or else one that it reads."""
        for each in (*call.changed, *call.tensors):
            owner = self._owners.get(identity(each))
            if owner is not None:
                return owner
        return None

    def _name(self, call: Call, tensor: Tensor) -> str:
        """How an operand is called: by its owner, by the running function, or by torch."""
        owner = self._owners.get(identity(tensor))
        if owner is not None:
            return owner.name
        place = next(n for n, each in enumerate(call.tensors) if each is tensor)
        argument = call.names[place]
        plain = f"input {place}" if argument in ("self", "input", "other") else argument
        return self._sources.variable(tensor) or plain

    def _detail(
        self, call: Call, output: Tensor, places: Tensor, before: Mapping[int, Tensor]
    ) -> Detail:
        tensors = [before.get(id(tensor), tensor) for tensor in call.tensors]
        names = [self._name(call, tensor) for tensor in call.tensors]
        first = tuple(places.nonzero()[0].tolist())
        terms = self._terms(call)
        return Detail(
            operands=tuple(operand(*each) for each in zip(names, tensors, strict=True)),
            values=tuple(_value(tensor, first, output) for tensor in tensors),
            histories=tuple(self._histories.get(identity(e), History()) for e in call.tensors),
            settings=call.settings,
            glance=self._glance(output, places, self._guilty_terms(terms)),
            loudest=self._loudest(tensors if terms is None else [terms]),
            twin=call.twin(output, before),
            limit=torch.finfo(output.dtype).max,
            states=self._states(call),
        )

    def _states(self, call: Call) -> tuple[str, ...]:
        """The tensors of the optimizer that the operands of an update were made of."""
        owners = (self._owners[key] for key in self._read(call) if key in self._owners)
        return tuple(sorted(owner.name for owner in owners if owner.role == "state"))

    def _terms(self, call: Call) -> Tensor | None:
        """The terms of a loss before they are summed up; None if it is no loss."""
        terms = call.unreduced()
        if terms is not None:
            self._batches.made(call.name, call.tensors, (terms,), call.settings)
        return terms

    def _guilty_terms(self, terms: Tensor | None) -> tuple[int, ...]:
        """The samples of which a loss has terms that are not finite."""
        return () if terms is None else self._batches.guilty(terms, bad(terms))

    def _loudest(self, tensors: Sequence[Tensor]) -> tuple[int, ...]:
        """The samples that stand out, by the operand with the largest elements that has some."""
        finite = [e for e in tensors if e.is_floating_point() and e.numel() and extent(e) is None]
        for tensor in sorted(finite, key=lambda each: -float(each.abs().max())):
            samples = self._batches.loudest(tensor)
            if samples:
                return samples
        return ()

    def _glance(self, tensor: Tensor, wrong: Tensor, otherwise: tuple[int, ...]) -> Glance:
        """Where a tensor is not finite."""
        samples = self._batches.guilty(tensor, wrong) or otherwise
        return Glance(
            count=int(wrong.sum()),
            of=tensor.numel(),
            positions=tuple(tuple(each) for each in wrong.nonzero()[:_POSITIONS].tolist()),
            samples=samples,
            all_samples=1 < len(samples) == self._batches.size,
            dtype=str(tensor.dtype).removeprefix("torch."),
        )


def _value(operand: Tensor, place: tuple[int, ...], output: Tensor) -> float | None:
    """The element of an operand that meets the element of the output at `place`."""
    if not fits(operand.shape, output.shape) or not operand.numel() or operand.is_complex():
        return None
    here = place[output.dim() - operand.dim() :]
    index = tuple(0 if size == 1 else at for size, at in zip(operand.shape, here, strict=True))
    return float(operand[index])


def _reach(tensor: Tensor) -> tuple[int, int]:
    """The first and the last element of storage that a tensor may use."""
    tensor = elements(tensor)
    first = int(tensor.storage_offset())
    if not tensor.numel():
        return first, first - 1
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return first, first + sum((size - 1) * stride for size, stride in sizes)


def _lost(call: Call, output: Tensor) -> float:
    """A number that was to keep a tensor from zero, and is zero itself in the tensor's type."""
    if call.name not in ("add", "clamp", "clamp_min") or not output.is_floating_point():
        return 0.0
    for name in ("other", "min"):
        term = call.settings.get(name)
        if isinstance(term, float) and term and not float(torch.tensor(term, dtype=output.dtype)):
            return term
    return 0.0
