"""What a model is called with: its data, apart from a state that it carries from call to call."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.multiprocessing import reductions
from torch.nn.utils.rnn import PackedSequence

from holter.watching.collectors.batches import ANY, Batches, Value, spread
from holter.watching.collectors.outputs import readable
from holter.watching.structures import parts

_Weak: Any = reductions.StorageWeakRef  # without types; the memory it names is not given away

_DEPTH = 4  # how deep in structures a tensor is looked for
_CALLS = 4  # of a model that are compared with those before


class Content(NamedTuple):
    """The numbers of a tensor; of a sparse one those that it holds, and where they are."""

    numbers: Tensor
    places: tuple[Tensor, ...] = ()
    share: float = 1.0  # of all elements
    is_produced: bool = False  # by weights that are trained: not data
    path: str = ""  # in the arguments of the call

    @property
    def argument(self) -> str:
        """Return which argument of the call it is, for people."""
        first, rest = self.path.removeprefix("[").partition("]")[::2]
        return (str(int(first) + 1) if first.isdigit() else first.strip("'")) + rest

    @property
    def is_of_samples(self) -> bool:
        """Whether it holds several numbers for each row."""
        numbers = self.numbers
        if self.places:
            return numbers.numel() > 0
        return numbers.dim() > 1 and numbers.numel() > numbers.shape[0]

    def fingerprint(self, batches: Batches) -> Value:
        """A number that differs with the numbers and with their places."""
        found = batches.fingerprint(self.numbers)
        for place in self.places:
            found = found + batches.fingerprint(place)
        return found

    def spread(self) -> tuple[Tensor, Tensor]:
        """Standard deviation and mean of all elements: those that a sparse one leaves out are 0."""
        std, mean = spread(self.numbers)
        if self.share == 1:
            return std, mean
        square = self.share * (std.square() + mean.square())
        mean = self.share * mean
        return (square - mean.square()).clamp(min=0).sqrt(), mean


class Arguments:
    """Tells the data of a model from a state that it is given back, as an LSTM's `hidden`.

    A state is what an earlier call returned, or what looks like a further output of this one:
    `output, hidden = model(data, hidden)`. The first calls of a model decide.
    """

    def __init__(self) -> None:
        self._left = _CALLS
        self._carried: set[str] = set()
        self._returned = Memory()  # of the last outputs

    def wants_output(self, arguments: Any) -> bool:
        """Whether the output of this call is needed to tell data from state."""
        return self._left > 0 and len(list(_tensors(arguments))) > 1

    def data(self, arguments: Any) -> list[Content]:
        """Return what can be read of the data, in the order of the arguments."""
        given = list(_tensors(arguments))
        own = [(path, tensor) for path, tensor in given if path not in self._carried]
        found = [(path, _content(tensor)) for path, tensor in own or given]
        return [content._replace(path=path) for path, content in found if content is not None]

    def of_call(self, arguments: tuple[Any, Any], output: Any) -> Any:
        """Return those with data of the positional and named arguments of a call that is over."""
        positional, named = arguments
        given = positional if self.data(positional) else named
        if self.wants_output(given):
            self._compare(given, output)
        return given

    def _compare(self, arguments: Any, output: Any) -> None:
        """Compare the arguments of a call with what this one and the last one returned."""
        self._left -= 1
        given, made = list(_tensors(arguments)), [tensor for _, tensor in _tensors(output)]
        further = {(tensor.shape, tensor.dtype) for tensor in made[1:] if tensor.dim()}
        for place, (path, tensor) in enumerate(given):
            alike = place and tensor.is_floating_point() and (tensor.shape, tensor.dtype) in further
            if alike or self._returned.holds(tensor):
                self._carried.add(path)
        passed_on = {_storage(tensor) for _, tensor in given}
        self._returned.clear()
        self._returned.add([tensor for tensor in made if _storage(tensor) not in passed_on])


class Memory:
    """The memory of some tensors: weakly, so that it is neither kept nor mistaken for a newer."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}

    def add(self, arguments: Any) -> bool:
        """Remember all tensors of a call; whether there are any."""
        given = {_storage(tensor): tensor for _, tensor in _tensors(arguments)}
        for place, tensor in given.items():
            if place is not None:
                self._held[place] = _Weak(tensor.untyped_storage())
        return bool(given)

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor is one of them, or a part or another view of one."""
        ref = self._held.get(_storage(tensor) or 0)
        return ref is not None and not ref.expired()

    def clear(self) -> None:
        """Forget them."""
        self._held.clear()


def unread(arguments: Any) -> str:
    """Return what a call holds instead of something that can be read, for people."""
    kinds = [type(tensor).__name__ for _, tensor in _tensors(arguments)]
    return f"a tensor of the class {kinds[0]}" if kinds else "no tensor"


def _tensors(value: Any, path: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, PackedSequence):
        value = value.data
    if isinstance(value, Tensor):
        yield path, value
        return
    found: Iterable[tuple[Any, str, Any]] = (parts(value) if depth else None) or ()
    for _, step, part in found:
        yield from _tensors(part, path + step, depth - 1)


def _content(tensor: Tensor) -> Content | None:
    is_produced = tensor.grad_fn is not None
    if tensor.layout is torch.strided or tensor.is_nested:
        numbers = readable(tensor, kinds=ANY)
        return None if numbers is None else Content(numbers, is_produced=is_produced)
    places: tuple[Tensor, ...]
    if tensor.layout is torch.sparse_coo:
        # Not coalesced, maybe: sums of repeated places are not made for a statistic.
        values, places = tensor._values(), (tensor._indices(),)  # noqa: SLF001
    elif tensor.layout is torch.sparse_csr:
        values, places = tensor.values(), (tensor.crow_indices(), tensor.col_indices())
    else:
        return None
    numbers = readable(values, kinds=ANY)
    if numbers is None:
        return None
    return Content(numbers, places, numbers.numel() / max(tensor.numel(), 1), is_produced)


def _storage(tensor: Tensor) -> int | None:
    """Return the identity of a tensor's memory, or None where it has none of its own."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    try:
        return int(tensor.untyped_storage()._cdata)  # noqa: SLF001
    except (NotImplementedError, RuntimeError):  # a tensor without memory
        return None
