"""Dataclasses as JSON objects: written with all their fields, read leniently.

Runs outlive versions of holter. A field that is missing or does not have its type gets its default,
or else the empty value of its type; a field that the class does not have is dropped.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_MISFIT: Any = object()
_EMPTY: dict[Any, Any] = {str: "", int: 0, float: 0.0, bool: False, tuple: (), Mapping: {}}

NAME = "json"  # the key of a field's metadata that holds its name in JSON, if that differs


def to_json(value: object) -> Any:
    """Return the fields of a dataclass as a dictionary, and those of nested ones likewise."""
    if is_dataclass(value):
        return {_name(field): to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_json(cls: type[_T], document: Mapping[str, Any]) -> _T:
    """Build a dataclass from a JSON object of any version of holter."""
    dataclass: Any = cls
    values = {}
    for field, hint in _typed_fields(dataclass):
        value = _fitting(hint, document.get(_name(field), _MISFIT))
        if value is not _MISFIT:
            values[field.name] = value
        elif field.default is MISSING and field.default_factory is MISSING:
            values[field.name] = _empty(hint)
    return cls(**values)


@cache
def _typed_fields(cls: Any) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(cls)
    return tuple((field, hints[field.name]) for field in fields(cls))


def _name(field: Field[Any]) -> str:
    return str(field.metadata.get(NAME, field.name))


def _fitting(hint: Any, value: Any) -> Any:
    """Return the value as an instance of the type, or `_MISFIT`."""
    if value is _MISFIT or hint is Any:
        return value
    if hint is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if fits else _MISFIT
    if hint is int:
        return value if isinstance(value, int) and not isinstance(value, bool) else _MISFIT
    if hint in (str, bool, NoneType):
        return value if isinstance(value, hint) else _MISFIT
    if is_dataclass(hint):
        fits = isinstance(value, Mapping)
        return from_json(hint, value) if fits and isinstance(hint, type) else _MISFIT
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        tried = (_fitting(argument, value) for argument in arguments)
        return next((fitted for fitted in tried if fitted is not _MISFIT), _MISFIT)
    if origin is Mapping:
        return _fitting_items(arguments[1], value) if isinstance(value, Mapping) else _MISFIT
    return _fitting_tuple(hint, value) if isinstance(value, list | tuple) else _MISFIT


def _fitting_items(hint: Any, value: Mapping[str, Any]) -> Any:
    """Return the mapping without the items that do not fit."""
    items = {key: _fitting(hint, item) for key, item in value.items()}
    return {key: item for key, item in items.items() if item is not _MISFIT}


def _fitting_tuple(hint: Any, value: list[Any] | tuple[Any, ...]) -> Any:
    if get_origin(hint) is tuple:
        hints = get_args(hint)
        hints = hints[:1] * len(value) if hints[1:] == (...,) else hints
    else:  # a NamedTuple
        hints = tuple(get_type_hints(hint).values())
    if len(hints) != len(value):
        return _MISFIT
    items = tuple(map(_fitting, hints, value))
    if any(item is _MISFIT for item in items):
        return _MISFIT
    return items if get_origin(hint) is tuple else hint(*items)


def _empty(hint: Any) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        return from_json(hint, {})
    return _EMPTY.get(get_origin(hint) or hint)
