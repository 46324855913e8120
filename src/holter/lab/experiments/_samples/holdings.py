"""What data sets and samplers hold of their own, found and put back: generators, open files."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

_DEEP = 5  # objects inside objects that are searched for generators
_LAYER = 1000  # of them at one depth
_WIDE = 100  # things in a list that are looked at; longer ones are the data
_NO_HOLDERS = (type, ModuleType, torch.Tensor, torch.nn.Module)


@contextmanager
def left_alone(*datasets: Any) -> Iterator[None]:
    """What data sets hold is afterwards as it was before: their own generators, open files.

    A file that is opened at the first access must not be open when workers are forked.
    """
    held = list({id(each): each for one in datasets for each in _inside(one)}.values())
    generators = [(each, _state(each)) for each in held if _is_generator(each)]
    attributes = [(vars(each), dict(vars(each))) for each in held if not _is_generator(each)]
    try:
        yield
    finally:
        for generator, state in generators:
            _restore(generator, state)
        for now, before in attributes:
            now.clear()
            now.update(before)


def _inside(thing: Any) -> list[Any]:
    """Data sets and generators: an object, what it holds, and beside its class in its module."""
    found: list[Any] = []
    seen: set[int] = set()
    module = sys.modules.get(type(thing).__module__)
    beside = vars(module).values() if module is not None else ()
    layer = [thing, *(each for each in beside if _is_generator(each))]
    for _ in range(_DEEP):
        inside: list[Any] = []
        for each in layer[:_LAYER]:
            if id(each) in seen:
                continue
            seen.add(id(each))
            if _is_generator(each):
                found.append(each)
            elif isinstance(each, list | tuple | dict):
                if len(each) <= _WIDE:
                    inside += each.values() if isinstance(each, dict) else each
            elif hasattr(each, "__dict__") and not isinstance(each, _NO_HOLDERS):
                inside += vars(each).values()
                if each is thing or isinstance(each, Dataset):
                    found.append(each)
        layer = inside
    return found


def _is_generator(thing: Any) -> bool:
    kinds = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
    return isinstance(thing, kinds)


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state()


def _restore(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)
