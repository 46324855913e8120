"""Preprocessing that is fitted again on held-out data."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called

_HELD_OUT = re.compile(r"(^|_)(test|val|va|te|valid|validation|eval|dev|holdout)(_|$|\d)", re.I)
_FITS = {"fit", "fit_transform", "adapt"}
# Methods that have no `transform` for new data, or that are trained for an evaluation.
_OTHERS = re.compile(r"tsne|mds|spectral|knn|clf|classifier|probe|calib|temperature|cluster", re.I)
_VOCABULARY = re.compile(r"^(build_|make_|get_|create_)?(vocab|vocabulary)(_from_iterator)?$", re.I)


def refitted(source: Source) -> Iterator[Pattern]:
    """`scaler.fit_transform(x_test)` where the same was fitted to other data before."""
    fits: dict[str, list[ast.Call]] = {}
    for node in source.of(ast.Call):
        if not node.args:
            continue
        if called(node) in _FITS and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if not _OTHERS.search(owner) and not _is_made_by_other(source, owner):
                fits.setdefault(owner, []).append(node)
        elif _VOCABULARY.match(called(node)):
            fits.setdefault(called(node), []).append(node)
    for owner, calls in fits.items():
        held_out = [call for call in calls if _is_held_out(call.args[0])]
        if held_out and len(held_out) < len(calls):
            for call in held_out:
                yield source.pattern("refitted", call, owner)


def _is_made_by_other(source: Source, owner: str) -> bool:
    """Whether a name is given to an object of such a method: `embed = TSNE(2)`."""
    return any(
        name == owner and _OTHERS.search(called(value))
        for scope in source.scopes
        for name, value, _ in source.assigned(scope)
    )


def _is_held_out(node: ast.expr) -> bool:
    """Whether an expression is named, or indexed, as held-out data are."""
    if isinstance(node, ast.ListComp | ast.GeneratorExp) and len(node.generators) == 1:
        return _is_held_out(node.generators[0].iter)
    if isinstance(node, ast.Subscript):
        return _is_held_out(node.value) or _is_held_out(node.slice)
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return bool(_HELD_OUT.search(name))
