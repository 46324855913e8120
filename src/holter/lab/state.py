"""State: a snapshot of everything a training step may change, restored and compared."""

import copy
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from holter.lab.randomness import RandomState, generators_of
from holter.lab.setup import Setup

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class NotRestoredError(RuntimeError):
    """Something differs after an experiment; the message names it."""


@contextmanager
def kept(setup: Setup) -> Iterator[None]:
    """Restore the training afterwards, whatever is done to it inside; a hash proves it."""
    state = State(setup)
    try:
        yield
    finally:
        state.restore()
        state.prove()


class State:
    """The state of a training at one moment: weights, gradients, optimizers, RNGs, modes."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._modules = _modules(setup)
        self._optimizers = _optimizers(setup)
        self._scalers = _unique(phase.scaler for phase in setup.phases)
        self._keepers = [
            each
            for each in (*setup.schedulers, *setup.others)
            if not isinstance(each, nn.Module | Optimizer)
        ]
        self._kept = self._read()

    def restore(self) -> None:
        """Restore everything in place: tensors stay the same objects."""
        with torch.no_grad():
            for module, was in zip(self._modules, self._kept["modules"], strict=True):
                _restore_module(module, was)
            for optimizer, was in zip(self._optimizers, self._kept["optimizers"], strict=True):
                _restore_optimizer(optimizer, was)
        for scaler, was in zip(self._scalers, self._kept["scalers"], strict=True):
            vars(scaler).update(copy.deepcopy(was))
        with torch.no_grad():
            for keeper, was in zip(self._keepers, self._kept["keepers"], strict=True):
                _restore_keeper(keeper, was)
        for place, was in zip(_places(self._setup), self._kept["places"], strict=True):
            vars(place).update(copy.copy(was))
        self._kept["random"].restore(generators_of(self._setup))

    def prove(self) -> None:
        """Raise NotRestoredError if anything differs from the snapshot."""
        now = _digests(self._read())
        differing = [n for n, digest in _digests(self._kept).items() if now.get(n) != digest]
        if differing:
            raise NotRestoredError(f"not restored: {', '.join(differing)}")

    @property
    def digest(self) -> str:
        """A hash of the whole snapshot."""
        return hashlib.sha256("".join(_digests(self._kept).values()).encode()).hexdigest()

    def _read(self) -> dict[str, Any]:
        random = RandomState.now(generators_of(self._setup))
        read = {
            "modules": [_module(module) for module in self._modules],
            "optimizers": [_optimizer(optimizer) for optimizer in self._optimizers],
            "scalers": [copy.deepcopy(vars(scaler)) for scaler in self._scalers],
            "keepers": [_keeper(keeper) for keeper in self._keepers],
            "places": [copy.copy(vars(each)) for each in _places(self._setup)],
            "random": random,
        }
        random.restore(generators_of(self._setup))  # copying an object may draw
        return read


def _digests(state: dict[str, Any]) -> dict[str, str]:
    """Return a hash of each part of a snapshot, by a readable name."""
    digests = {
        f"{kind[:-1]} {number}": _hash(part)
        for kind in ("modules", "optimizers", "scalers", "keepers")
        for number, part in enumerate(state[kind])
    }
    return {**digests, "random numbers": _hash(state["random"].values)}


def _modules(setup: Setup) -> list[nn.Module]:
    roots = [*setup.models.values()]
    roots += [each for each in setup.others if isinstance(each, nn.Module)]
    return _unique(module for root in roots for module in root.modules())


def _optimizers(setup: Setup) -> list[Optimizer]:
    return _unique(
        [*setup.optimizers, *(each for each in setup.others if isinstance(each, Optimizer))]
    )


def _unique(things: Any) -> list[Any]:
    return list({id(each): each for each in things if each is not None}.values())


def _module(module: nn.Module) -> dict[str, Any]:
    """Return a module's own tensors, gradients, plain attributes and mode."""
    tensors = {
        (kind, name): (None if each is None else each.detach().clone())
        for kind in ("_parameters", "_buffers")
        for name, each in vars(module)[kind].items()
    }
    owned = {
        name: _copied(each)
        for name, each in vars(module).items()
        if isinstance(each, (*_PLAIN, Tensor, list, dict))
        and not name.startswith("_")
        and not _holds_modules(each)
    }
    grads = {
        name: None if each is None or each.grad is None else each.grad.detach().clone()
        for name, each in vars(module)["_parameters"].items()
    }
    flags = {
        name: each.requires_grad
        for name, each in vars(module)["_parameters"].items()
        if each is not None
    }
    return {"tensors": tensors, "own": owned, "grads": grads, "flags": flags}


def _holds_modules(value: Any) -> bool:
    if isinstance(value, list | dict):
        leaves = value if isinstance(value, list) else value.values()
        return any(not isinstance(leaf, (*_PLAIN, Tensor)) for leaf in leaves)
    return False


def _restore_module(module: nn.Module, was: dict[str, Any]) -> None:
    for (kind, name), value in was["tensors"].items():
        now = vars(module)[kind].get(name)
        if value is None or now is None or not _are_alike(now, value):
            if kind == "_buffers":
                vars(module)[kind][name] = _copied(value)
            elif now is not None and value is not None:
                now.data = value.clone()
        else:
            now.copy_(value)
    for name in [n for n in vars(module)["_buffers"] if ("_buffers", n) not in was["tensors"]]:
        del vars(module)["_buffers"][name]
    for name, value in was["own"].items():
        now = vars(module).get(name)
        if isinstance(value, Tensor) and isinstance(now, Tensor) and now.shape == value.shape:
            now.detach().copy_(value)
        else:
            vars(module)[name] = _copied(value)
    for name, parameter in vars(module)["_parameters"].items():
        if parameter is not None and name in was["flags"]:
            parameter.requires_grad_(was["flags"][name])
            _restore_grad(parameter, was["grads"][name])


def _restore_grad(parameter: Tensor, was: Tensor | None) -> None:
    if was is None or parameter.grad is None or parameter.grad.shape != was.shape:
        parameter.grad = None if was is None else was.clone()
    else:
        parameter.grad.copy_(was)


def _optimizer(optimizer: Optimizer) -> dict[str, Any]:
    return {
        "state": {
            key: {name: _copied(value) for name, value in values.items()}
            for key, values in optimizer.state.items()
        },
        "groups": [
            {name: _copied(value) for name, value in group.items() if name != "params"}
            for group in optimizer.param_groups
        ],
        "params": [list(group["params"]) for group in optimizer.param_groups],
        # Gradients of what is in no model.
        "grads": [
            [None if p.grad is None else p.grad.detach().clone() for p in group["params"]]
            for group in optimizer.param_groups
        ],
        "values": [
            [p.detach().clone() for p in group["params"]] for group in optimizer.param_groups
        ],
    }


def _copied(value: Any) -> Any:
    """Return a copy that shares no memory."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) is list:
        return [_copied(item) for item in value]
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    try:
        return copy.deepcopy(value)
    except Exception:  # an object that cannot be copied is no state of a training
        return value


def _restore_optimizer(optimizer: Optimizer, was: dict[str, Any]) -> None:
    del optimizer.param_groups[len(was["groups"]) :]
    kept_groups = zip(
        optimizer.param_groups,
        was["groups"],
        was["params"],
        was["values"],
        was["grads"],
        strict=True,
    )
    for group, settings, params, values, grads in kept_groups:
        group["params"][:] = params
        _restore_entries(group, settings, spared=("params",))
        for parameter, value, grad in zip(params, values, grads, strict=True):
            parameter.copy_(value)
            _restore_grad(parameter, grad)
    for key in [each for each in optimizer.state if each not in was["state"]]:
        del optimizer.state[key]
    for key, entries in was["state"].items():
        _restore_entries(optimizer.state[key], entries)


def _restore_entries(
    now: dict[str, Any], was: dict[str, Any], *, spared: tuple[str, ...] = ()
) -> None:
    """Restore the entries of a dictionary; tensors in place, as a compiled step may hold them."""
    for name in [each for each in now if each not in was and each not in spared]:
        del now[name]
    for name, value in was.items():
        held = now.get(name)
        if isinstance(value, Tensor) and isinstance(held, Tensor) and _are_alike(held, value):
            held.copy_(value)
        else:
            now[name] = _copied(value)


def _are_alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


def _keeper(keeper: Any) -> dict[str, Any]:
    """Return the plain attributes of a scheduler or of another object."""
    return {
        name: _copied(value)
        for name, value in vars(keeper).items()
        if isinstance(value, (*_PLAIN, Tensor)) or _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    return isinstance(value, list | dict | tuple) and all(
        isinstance(leaf, (*_PLAIN, Tensor)) for leaf in pytree.tree_leaves(value)
    )


def _restore_keeper(keeper: Any, was: dict[str, Any]) -> None:
    _restore_entries(vars(keeper), was, spared=tuple(vars(keeper)))


def _places(setup: Setup) -> list[Any]:
    """Return the parts of loaders that may keep a position: samplers and iterable data sets."""
    found: list[Any] = []
    for loader in setup.loaders.values():
        for each in (loader.sampler, loader.batch_sampler, loader.dataset):
            streams = isinstance(each, torch.utils.data.IterableDataset)
            if (
                each is not None
                and hasattr(each, "__dict__")
                and (streams or each is not loader.dataset)
            ):
                found.append(each)
    return _unique(found)


def _hash(value: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        _feed_tensor(digest, value.detach().cpu())
    elif isinstance(value, dict):
        items = list(value.items())
        if all(isinstance(key, str) for key in value):  # in whichever order they were added
            items.sort(key=itemgetter(0))
        for key, item in items:
            digest.update(repr(key).encode() if isinstance(key, (*_PLAIN, tuple)) else b"key")
            _feed(digest, item)
    elif isinstance(value, list | tuple):
        digest.update(f"{type(value).__name__}{len(value)}".encode())
        for item in value:
            _feed(digest, item)
    elif isinstance(value, _PLAIN):
        digest.update(repr(value).encode())
    elif hasattr(value, "tobytes"):
        digest.update(value.tobytes())
    else:
        digest.update(type(value).__name__.encode())


def _feed_tensor(digest: Any, tensor: Tensor) -> None:
    """Feed the values of a tensor; of a sparse one where they are, too."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        digest.update(f"{tensor.layout}".encode())
        for part in _dense_parts(tensor):
            _feed_tensor(digest, part)
        return
    flat = tensor.contiguous().resolve_conj().resolve_neg()
    digest.update(f"{flat.dtype}{tuple(flat.shape)}".encode())
    digest.update(flat.reshape(-1).view(torch.uint8).numpy().tobytes() if flat.numel() else b"")


def _dense_parts(tensor: Tensor) -> list[Tensor]:
    if tensor.is_nested:
        return list(tensor.unbind())
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]  # noqa: SLF001  (also if not coalesced)
    compressed = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    rows = tensor.crow_indices() if compressed else tensor.ccol_indices()
    columns = tensor.col_indices() if compressed else tensor.row_indices()
    return [rows, columns, tensor.values()]
