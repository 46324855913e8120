"""Where a library trains: the user's function that has returned the loss to it."""

import ast
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch import Tensor

from holter.scripts.recognition.kinds import has_graph
from holter.scripts.recognition.sites import Site
from holter.scripts.recognition.sources import source_of

_REMEMBERED = 64  # returns of losses
_STEPS = 3  # operations that a library may put on top of a loss: a division, a scale


@dataclass(frozen=True, eq=False)
class Returned:
    """A loss that a function of the user has returned, by itself or in a dictionary."""

    frame: FrameType
    line: int
    loss: Tensor
    key: str | None


class Returns:
    """Remembers what functions of the user have returned lately."""

    def __init__(self) -> None:
        self._seen: deque[Returned] = deque(maxlen=_REMEMBERED)

    def notice(self, frame: FrameType, value: Any) -> None:
        """A function of the user returns."""
        key = "loss" if isinstance(value, Mapping) and "loss" in value else None
        loss = value if key is None else value[key]
        if isinstance(loss, Tensor) and loss.numel() == 1 and loss.grad_fn is not None:
            self._seen.append(Returned(frame, frame.f_lineno, loss, key))

    def origin(self, root: Tensor) -> tuple[Site, FrameType] | None:
        """The outermost function that has returned the loss `root` was made of, as a site.

        A function that was itself given values with a graph is not where the loss comes from.
        """
        below = _below(root)
        for each in reversed(self._seen):
            if each.loss is not root and each.loss.grad_fn not in below:
                continue
            code = each.frame.f_code
            count = code.co_argcount + code.co_kwonlyargcount
            given = [each.frame.f_locals.get(name) for name in code.co_varnames[:count]]
            if not any(has_graph(value) for value in given):
                site = _site(each)
                if site is not None:
                    return site, each.frame
        return None

    def forget(self) -> None:
        """Hold nothing of the last step."""
        self._seen.clear()


def _below(root: Tensor) -> set[Any]:
    found = {root.grad_fn}
    for _ in range(_STEPS):
        found |= {node for each in found if each is not None for node, _ in each.next_functions}
    return found


def _site(returned: Returned) -> Site | None:
    source = source_of(returned.frame)
    if source is None:
        return None
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        function = source.function(node)
        if not node.lineno <= returned.line <= (node.end_lineno or node.lineno):
            continue
        if isinstance(function, ast.FunctionDef) and function.name == returned.frame.f_code.co_name:
            loss: ast.expr = node.value
            if returned.key is not None:
                loss = ast.Subscript(loss, ast.Constant(returned.key), ast.Load())
                ast.fix_missing_locations(ast.copy_location(loss, node.value))
            return Site(source, returned.frame.f_code, node, loss, scaled=False)
    return None
