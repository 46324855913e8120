"""Layout: which dimension of a tensor holds samples, and which one holds time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler

from holter.lab.batches import opaque, tensors
from holter.lab.calls import LossEvaluation, first_loss_call
from holter.lab.changes.modes import in_eval_mode
from holter.lab.experiments._probing.probe import Probe, Tensors
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup

_IGNORED = -100  # what torch's loss functions leave out by default
_AGREE = 0.99  # share of the elements that have to be equal
_ENOUGH = 4  # elements that have to be compared


@dataclass(frozen=True, slots=True)
class Sequences:
    """An input whose next element is the target: along which dimension, and where it counts."""

    name: str
    dim: int
    counted: Tensor  # of each place of the input, whether its output has a target


@dataclass(frozen=True, slots=True)
class Samples:
    """How many samples there are, and where: the dimension of each tensor that has them."""

    count: int
    dims: Mapping[str, int]

    def take(self, inputs: Tensors, index: Iterable[int]) -> Tensors:
        """The inputs that have samples, with those at `index` in their place."""
        chosen = torch.as_tensor(list(index))
        return {
            name: inputs[name].index_select(dim, chosen.to(inputs[name].device))
            for name, dim in self.dims.items()
        }


def samples_of(
    setup: Setup, batch: Batch, given: Probe | Tensors, sequences: Sequences | None = None
) -> Samples:
    """Where the inputs of the model have their samples; declines where that is unknown."""
    inputs = given.inputs if isinstance(given, Probe) else given
    if isinstance(given, Probe):  # a state that the model carries along belongs to no sample
        inputs = {name: each for name, each in inputs.items() if name not in given.state}
    for name, kind in (given.opaque if isinstance(given, Probe) else opaque(batch)).items():
        raise InapplicableError(f"samples cannot be taken apart: {name or 'the batch'} is {kind}")
    loader = setup.loaders.get("train")
    told = _tells(loader) or sequences is not None
    if sequences is not None:
        count = _beside(inputs, sequences)
    elif not told and setup.samples is not None:
        count, told = setup.samples, True
    elif not told and (aimed := _aimed_at(setup, batch, inputs)) is not None:
        count, told = aimed, True
    else:
        count = _count(loader, batch)
    if count < 2:
        raise InapplicableError("a batch holds a single sample")
    dims = {}
    for name, each in inputs.items():
        if sequences is not None and name == sequences.name:
            dims[name] = 1 - sequences.dim
        else:
            dim = _sample_dim(each, count, told=told)
            dims |= {} if dim is None else {name: dim}
    _reject_strangers(inputs, dims, count)
    if not _tells(loader):
        _reject_links(inputs, dims, count, _held_tensors(setup.model))
    return Samples(count, dims)


def is_shuffled(setup: Setup) -> bool:
    """Whether training batches are known to be made of samples in random order."""
    loader = setup.loaders.get("train")
    return setup.samples_shuffled or (
        loader is not None
        and not isinstance(loader.dataset, IterableDataset)
        and not isinstance(loader.sampler, SequentialSampler)
    )


def output_dims(probe: Probe, samples: Samples, outputs: Tensors) -> dict[str, int]:
    """The outputs that have a dimension of samples: the one that shrinks with their number."""
    try:
        shrunk = probe.outputs(samples.take(probe.inputs, range(samples.count - 1)))
    except Exception:  # a model that knows the size of its batches
        shrunk = {}
    dims = {}
    for name, each in outputs.items():
        if name in shrunk and shrunk[name].dim() == each.dim():
            pairs = enumerate(zip(each.shape, shrunk[name].shape, strict=True))
            differing = [dim for dim, (whole, less) in pairs if whole != less]
        else:
            differing = [dim for dim, length in enumerate(each.shape) if length == samples.count]
            differing = differing if not shrunk and differing == [0] else []
        if len(differing) == 1 and each.shape[differing[0]] == samples.count:
            dims[name] = differing[0]
    return dims


def sequences_of(inputs: Tensors, targets: Iterable[Tensor]) -> Sequences | None:
    """The input whose next element is what is to be predicted, by value."""
    for target in targets:
        for name, each in inputs.items():
            if each.is_complex() or target.is_complex():
                continue
            values = as_classes(each)
            for dim in (1, 0):
                counted = _counted(values, target.to(values.device), dim)
                if counted is not None:
                    return Sequences(name, dim, counted)
    return None


def loss_targets(setup: Setup, batch: Batch) -> list[Tensor]:
    """What the first loss function of the forward pass is given as target."""
    call = known_loss_call(setup, batch)
    return [] if call is None else tensors(call.arguments.get("target"))


def known_loss_call(setup: Setup, batch: Batch) -> LossEvaluation | None:
    """The first loss function of the forward pass; none where that takes gradients itself."""
    try:
        return first_loss_call(setup, batch)
    except RuntimeError:
        return None


def as_classes(tensor: Tensor) -> Tensor:
    """Rows of a one and zeros as the number of the one; all else as it is."""
    if is_one_hot(tensor):
        return tensor.argmax(-1)
    return tensor


def is_one_hot(tensor: Tensor) -> bool:
    """Whether each row along the last dimension is a one and zeros."""
    return (
        tensor.dim() >= 2
        and tensor.shape[-1] > 1
        and tensor.is_floating_point()
        and bool(((tensor == 0) | (tensor == 1)).all())
        and bool((tensor.sum(-1) == 1).all())
    )


def _tells(loader: DataLoader[Any] | None) -> bool:
    return _batch_size(loader) is not None


def _batch_size(loader: DataLoader[Any] | None) -> int | None:
    """What a loader says of the size of its batches, or the sampler that makes them."""
    if loader is None or loader.batch_size is not None:
        return None if loader is None else loader.batch_size
    size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def _count(loader: DataLoader[Any] | None, batch: Batch) -> int:
    """How many samples: as the loader says, else as the first dimension of all tensors says."""
    shapes = [tensor.shape for tensor in tensors(batch) if tensor.dim()]
    count = _batch_size(loader)
    if loader is not None and count is not None:
        if not isinstance(loader.dataset, IterableDataset):
            count = min(count, len(loader.dataset))  # type: ignore[arg-type]
        if not any(count in shape[:2] for shape in shapes):
            raise InapplicableError(f"no tensor of the batch has the loader's batch size {count}")
        return count
    firsts = {shape[0] for shape in shapes}
    if len(firsts) != 1:
        raise InapplicableError("the batch dimension is ambiguous")
    return firsts.pop()


def _aimed_at(setup: Setup, batch: Batch, inputs: Tensors) -> int | None:
    """The samples by the loss: one target for each row of predictions; None if it does not tell."""
    try:
        with in_eval_mode(setup.model):  # in train mode, running statistics would change
            call = known_loss_call(setup, batch)
    except Exception:  # models that return something else in eval mode
        return None
    scores, targets = (None, None) if call is None else map(call.arguments.get, ("input", "target"))
    if not isinstance(scores, Tensor) or not isinstance(targets, Tensor):
        return None
    if targets.dim() != 1 or not scores.dim() or len(scores) != len(targets):
        return None
    count = len(targets)
    return count if any(count in each.shape[:2] for each in inputs.values()) else None


def _held_tensors(model: nn.Module) -> Iterator[Tensor]:
    """Buffers, and other tensors among the attributes of modules."""
    yield from model.buffers()
    for module in model.modules():
        yield from (each for each in vars(module).values() if isinstance(each, Tensor))


def _beside(inputs: Tensors, sequences: Sequences) -> int:
    """The samples of an input of which the dimension of time is known."""
    shape = inputs[sequences.name].shape
    if len(shape) == 1:
        raise InapplicableError("a batch holds a single sequence")
    return shape[1 - sequences.dim]


def _sample_dim(tensor: Tensor, count: int, *, told: bool) -> int | None:
    holding = [dim for dim, length in enumerate(tensor.shape[:2]) if length == count]
    may_be_time_first = tensor.dim() == 3 or (tensor.dim() == 2 and not tensor.is_floating_point())
    if not may_be_time_first:
        return 0 if 0 in holding else None
    if not told:
        raise InapplicableError(
            "without a DataLoader, the batch and the sequence dimension are indistinguishable"
        )
    if len(holding) == 2:
        raise InapplicableError(
            f"two dimensions of an input have size {count}: the batch dimension is ambiguous"
        )
    return holding[0] if holding else None


def _reject_strangers(inputs: Tensors, dims: Mapping[str, int], count: int) -> None:
    """Decline inputs that belong to no sample, as the edges of a graph: they may link samples."""
    if not dims:
        raise InapplicableError(
            f"no input of the model has a dimension of size {count}, the batch size"
        )
    others = {
        length
        for name, dim in dims.items()
        for at, length in enumerate(inputs[name].shape)
        if at != dim
    }
    for name, each in inputs.items():
        if name not in dims and each.numel() > 1 and not set(each.shape) <= others | {1}:
            raise InapplicableError(f"the input {name} {tuple(each.shape)} may link samples")


def _reject_links(
    inputs: Tensors, dims: Mapping[str, int], count: int, buffers: Iterable[Tensor]
) -> None:
    """Decline what looks like a graph of samples: a matrix between them, or a list of pairs."""
    matrices = [inputs[name] for name in dims if len(dims) > 1]
    for each in (*matrices, *buffers):
        if each.layout is not torch.strided:
            raise InapplicableError("a sparse tensor may link samples")
        pairs = each.dim() == 2 and len(each) == 2 and not each.is_floating_point()
        if tuple(each.shape) == (count, count) or (pairs and each.numel() > 2):
            raise InapplicableError(f"a tensor {tuple(each.shape)} may link samples")


def _counted(values: Tensor, target: Tensor, dim: int) -> Tensor | None:
    """Where `target` is the element of `values` that comes next along `dim`; None if it is not."""
    if values.dim() <= dim or values.shape[dim] < 3:
        return None
    time = values.shape[dim]
    following = values.narrow(dim, 1, time - 1)
    for wanted in _aligned(target, values, following, dim):
        counted = wanted != _IGNORED
        if not wanted.is_floating_point():
            counted &= wanted >= 0
        equal, unshifted = wanted == following, wanted == values.narrow(dim, 0, time - 1)
        if int(counted.sum()) < _ENOUGH or float(unshifted[counted].float().mean()) > 0.9:
            continue
        if float(equal[counted].float().mean()) >= _AGREE:
            last = torch.ones_like(counted.narrow(dim, 0, 1))
            return torch.cat((counted, last), dim)
    return None


def _aligned(target: Tensor, values: Tensor, following: Tensor, dim: int) -> Iterable[Tensor]:
    """The target in the shape of what follows each element, however it was flattened."""
    time = values.shape[dim]
    if target.numel() == following.numel():
        yield target.reshape(following.shape)
    if target.numel() == values.numel():
        yield target.reshape(values.shape).narrow(dim, 0, time - 1)
        if values.dim() == 2 and target.dim() == 1:  # flattened the other way round
            yield target.reshape(values.shape[::-1]).t().narrow(dim, 0, time - 1)
