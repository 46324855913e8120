"""Transforms that are set for all parts, or for training alone."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.loops import LOOPS
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called

_TRAINING = re.compile(
    r"(self\.)?(is_)?(train|training)|(self\.)?(split|mode|phase) == '(train|training)'"
)


@reads
def shared(source: Source) -> Iterator[Pattern]:
    """`val_set.dataset.transform = ...` after `train_set, val_set = random_split(dataset, ...)`."""
    for parts in _splits(source):
        placed = [
            (node, owner)
            for node, target in _targets(source)
            if "transform" in target.attr and (owner := _owner(target.value)) in parts
        ]
        is_own = any(
            target.attr == "dataset"
            and isinstance(target.value, ast.Name)
            and target.value.id in parts
            for _, target in _targets(source)
        )
        owners = {owner for _, owner in placed}
        is_same = len(owners) > 1 and len({ast.unparse(node.value) for node, _ in placed}) == 1
        is_switched = any(
            isinstance(each, LOOPS) for node, _ in placed for each in source.above(node)
        )
        if is_own or is_same or is_switched:
            continue  # parts with a data set each, one transform for all, or set before each use
        for node, owner in placed:
            if not _is_after_training(source, node):
                yield source.pattern("shared transform", node, owner)


def _splits(source: Source) -> Iterator[set[str]]:
    """Yield the names of the parts of each split that has several."""
    for node in source.of(ast.Assign):
        if called(node.value) == "random_split":
            names = {
                name.id
                for target in node.targets
                for name in source.walk(target)
                if isinstance(name, ast.Name) and name.id.strip("_")
            }
            if len(names) > 1:
                yield names


def _targets(source: Source) -> Iterator[tuple[ast.Assign, ast.Attribute]]:
    """Yield the assignments to attributes."""
    for node in source.of(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                yield node, target


def _owner(held: ast.expr) -> str:
    """Return the name in `name.dataset`, or ""."""
    if isinstance(held, ast.Attribute) and held.attr == "dataset":
        return held.value.id if isinstance(held.value, ast.Name) else ""
    return ""


def _is_after_training(source: Source, node: ast.Assign) -> bool:
    """Whether the last `backward()` of the same scope comes before a statement."""
    lines = [
        call.lineno
        for call in source.of(ast.Call)
        if isinstance(call, ast.Call)
        and called(call) == "backward"
        and source.scope(call) is source.scope(node)
    ]
    return bool(lines) and max(lines) < node.lineno


@reads
def scaled_in_training(source: Source) -> Iterator[Pattern]:
    """`if self.train: x = normalize(x, MEAN, STD)`: held-out samples keep another scale."""
    for branch in source.of(ast.If):
        if branch.orelse or not _TRAINING.fullmatch(ast.unparse(branch.test)):
            continue
        scales = [
            call
            for part in branch.body
            for call in source.walk(part)
            if called(call) in ("normalize", "normalise", "standardize", "standardise")
        ]
        function = source.scope(branch)
        every = [call for call in source.walk(function) if called(call) == called(scales[0])] if (
            scales) else []  # fmt: skip
        in_sample = getattr(function, "name", "") in ("__getitem__", "__call__", "transform")
        if in_sample and scales and len(every) == len(scales) and isinstance(scales[0], ast.Call):
            yield source.pattern("scaled in training alone", branch, called(scales[0]))
