"""Events: the operations of a step that gave out what is not finite, and what they were given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holter.lab.birth.owners import Owner
from holter.lab.birth.sources import CallSite
from holter.lab.birth.values import Extent
from holter.record.births import Operand

Stage = Literal["forward", "backward", "update"]


@dataclass(frozen=True, slots=True)
class Glance:
    """The elements of a tensor that are not finite."""

    count: int = 0
    of: int = 0
    positions: tuple[tuple[int, ...], ...] = ()
    samples: tuple[int, ...] = ()
    all_samples: bool = False  # of a batch of several
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """A tensor that was not finite before any operation of the step."""

    owner: Owner
    extent: Extent
    operand: Operand
    glance: Glance


@dataclass(frozen=True, slots=True)
class Parent:
    """Whence an operand has what is not finite in it: an earlier event, by number, or outside."""

    source: int | Outside
    extent: Extent


@dataclass(frozen=True, slots=True)
class History:
    """The operations that led to a tensor, the last first; and a term that was lost on the way."""

    chain: tuple[str, ...] = ()
    lost: float = 0.0  # added, but too small for the type
    read: frozenset[int] = frozenset()  # in an update: the storages that it was made of


@dataclass(frozen=True, slots=True)
class Twin:
    """The output of the same operation with more bits."""

    finite: bool
    largest: float


@dataclass(frozen=True, slots=True)
class Detail:
    """What an operation was given when it gave out something new that is not finite."""

    operands: tuple[Operand, ...]
    values: tuple[float | None, ...]  # of each operand, where the output is not finite
    histories: tuple[History, ...]
    settings: Mapping[str, Any]  # arguments that are no tensors
    glance: Glance
    loudest: tuple[int, ...]  # samples of which the operands are far larger than of others
    twin: Twin | None
    limit: float  # of the output's type
    states: tuple[str, ...] = ()  # of the optimizer, that the operands were made of


@dataclass(frozen=True, slots=True)
class TracedOperation:
    """An operation that gave out something that is not finite."""

    operation: str
    phase: Stage
    site: CallSite
    extent: Extent
    parents: tuple[Parent, ...]
    constant: bool  # it was given a plain number that is not finite
    in_place: bool
    fresh: bool  # some of it though the operands are finite there
    shrinks: bool  # it gave out less than it was given
    owner: Owner | None  # of what it has changed
    detail: Detail | None
