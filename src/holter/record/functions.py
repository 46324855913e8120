"""The page and the options of a documented function."""

import inspect
from collections.abc import Callable
from typing import Any


def page_of(function: Callable[..., Any]) -> str:
    """Return the docstring of a function, in Markdown."""
    return inspect.cleandoc(function.__doc__ or "")


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the keyword-only parameters of a function with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
