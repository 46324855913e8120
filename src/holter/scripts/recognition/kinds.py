"""What the objects of a running script are: models, data, helpers, code of libraries."""

import dis
import functools
import inspect
import os
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils import _pytree as pytree
from torch.utils.data import DataLoader, Dataset

Namespace = Mapping[str, Any]

PLAIN = (bool, int, float, complex, str, bytes, type(None))
FIXED = (slice, range, np.generic, torch.Size, torch.dtype, torch.device)  # nobody can change them
CONTAINERS = (list, dict, set, deque)
_HELPERS = (Optimizer, GradScaler, LRScheduler, DataLoader, Dataset, ModuleType, type)
_HOLTER = f"{Path(__file__).parents[2]}{os.sep}"
_TORCH = f"{Path(torch.__file__).parent}{os.sep}"
_FOLDERS = tuple(
    f"{Path(sysconfig.get_path(name))}{os.sep}"
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_DEPTH = 3  # how far functions that call functions are followed


def is_ours(file: str) -> bool:
    """Whether a file is part of torch or of holter."""
    return file.startswith((_HOLTER, _TORCH))


def is_library(file: str) -> bool:
    """Whether code is not the user's own: installed, built in, or without a file."""
    return (
        file.startswith("<")
        or is_ours(file)
        or file.startswith(_FOLDERS)
        or "site-packages" in file
        or "dist-packages" in file
    )


def is_model(value: object) -> bool:
    """Whether it is a module with parameters."""
    return isinstance(value, nn.Module) and next(value.parameters(), None) is not None


def tensors(value: object) -> list[Tensor]:
    """The tensors in lists, tuples and dictionaries, however nested."""
    return [each for each in pytree.tree_leaves(value) if isinstance(each, Tensor)]


def dense(value: Tensor) -> Tensor:
    """A tensor without a graph that can be compared: of a sparse one its values, place by place."""
    value = value.detach()
    return value if value.layout is torch.strided else value.to_dense()


def has_graph(value: object) -> bool:
    """Whether it holds a tensor that was computed from parameters."""
    return any(tensor.grad_fn is not None for tensor in tensors(value))


def is_data(value: object) -> bool:
    """Whether it holds tensors, and none that is a parameter."""
    found = tensors(value)
    return bool(found) and not any(isinstance(each, nn.Parameter) for each in found)


def is_plain(value: object) -> bool:
    """Whether it is made of numbers, strings and arrays."""
    if isinstance(value, (*PLAIN, *FIXED, np.ndarray)):
        return True
    leaves = pytree.tree_leaves(value)
    return len(leaves) < 10_000 and all(isinstance(e, (*PLAIN, *FIXED, np.ndarray)) for e in leaves)


def is_users(value: object) -> bool:
    """Whether it is an object of a class that the user has written, with attributes of its own."""
    if isinstance(value, (*_HELPERS, nn.Module, Tensor, FunctionType, MethodType)):
        return False
    return hasattr(value, "__dict__") and not is_library(_file_of(type(value)))


def _file_of(kind: type) -> str:
    for each in vars(kind).values():
        if isinstance(each, FunctionType) and not each.__code__.co_filename.startswith("<"):
            return each.__code__.co_filename
    home = sys.modules.get(kind.__module__)
    return "<unknown>" if home is None else str(vars(home).get("__file__") or "<unknown>")


def look_up(name: str, names: Namespace) -> Any:
    """The value of a dotted name, without running anything; the model itself below a model."""
    first, *rest = name.split(".")
    value = names.get(first)
    for part in rest:
        if isinstance(value, nn.Module):
            return value
        held = vars(value) if hasattr(value, "__dict__") else {}
        if part not in held:
            return None
        value = held[part]
    return value


def involves_model(value: object, depth: int = _DEPTH) -> bool:
    """Whether using it may run a model: it is one, holds one, or is a function that calls one."""
    if isinstance(value, nn.Module):
        return is_model(value)
    if isinstance(value, (*PLAIN, Tensor, *_HELPERS)) or depth == 0:
        return False
    if isinstance(value, Mapping):
        return any(isinstance(each, nn.Module) and is_model(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(isinstance(each, nn.Module) and is_model(each) for each in value)
    if isinstance(value, functools.partial):
        parts = (value.func, *value.args, *value.keywords.values())
        return any(involves_model(part, depth - 1) for part in parts)
    if isinstance(value, FunctionType | MethodType):
        return any(involves_model(each, depth - 1) for each in used_by(value))
    if is_users(value):
        return any(is_model(each) for each in vars(value).values())
    return False


def used_by(function: FunctionType | MethodType) -> Iterator[object]:
    """What the user's function refers to: globals, variables around it, attributes of `self`."""
    if isinstance(function, MethodType):
        own, code = function.__self__, method_code(function)
        if code is not None:
            held = vars(own) if hasattr(own, "__dict__") else {}
            for name in all_names(code):
                if name in held:
                    yield held[name]
                elif (method := method_of(own, name)) is not None:
                    yield method
            yield from used_by(function.__func__)  # type: ignore[arg-type]
        return
    if is_library(function.__code__.co_filename):
        return
    known = function.__globals__
    yield from (known[name] for name in global_names(function.__code__) if name in known)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue


def method_of(value: object, name: str) -> MethodType | None:
    """The user's method of that name, bound, without running anything."""
    found = inspect.getattr_static(type(value), name, None)
    if isinstance(found, FunctionType) and not is_library(found.__code__.co_filename):
        return MethodType(found, value)
    return None


def method_code(method: MethodType) -> CodeType | None:
    """The code of a method that the user has written."""
    function = method.__func__
    if isinstance(function, FunctionType) and not is_library(function.__code__.co_filename):
        return function.__code__
    return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@functools.cache
def global_names(code: CodeType) -> frozenset[str]:
    """The global variables that code reads."""
    return frozenset(
        each.argval
        for part in _codes(code)
        for each in dis.get_instructions(part)
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    )


@functools.cache
def all_names(code: CodeType) -> frozenset[str]:
    """The names of globals and attributes in code."""
    return frozenset(name for part in _codes(code) for name in part.co_names)


def may_change(receiver: object, method: str) -> bool:
    """Whether a call of `method` may change its object in a way that a loss depends on."""
    if isinstance(receiver, (*_HELPERS, nn.Module)):
        # Modes are left to whoever repeats the step; gradients are cleared by them.
        return False
    if isinstance(receiver, Tensor):  # or what has become one since: a list that was joined
        return method not in ("backward", "register_hook")
    if isinstance(receiver, CONTAINERS):
        return True
    return is_users(receiver) or receiver is None


def first_with_graph(values: Sequence[object]) -> int | None:
    """The place of the first tensor that could be a loss."""
    for place, each in enumerate(values):
        if isinstance(each, Tensor) and each.requires_grad:
            return place
    return None
