"""Which weights are kept or copied: the worst ones, or in the wrong direction."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.metrics import polarity
from holter.scripts.reading.source import Pattern, Source, called, dotted

_BEST = re.compile(r"best", re.I)
# A loss that is turned around, and attacks, which look for the largest loss.
_TURNED = re.compile(r"neg|minus|inv|gain|improve|reduc|drop|decrease|ratio|reward|return", re.I)
_ATTACK = re.compile(r"adv|attack|delta|perturb|hardest|restart", re.I)
_COPIES = re.compile(r"eval|best|copy|clone|snapshot|saved|backup|old|prev|frozen", re.I)
_BEGINNING = re.compile(r"init|build|make|create|setup|reset|load|restore", re.I)
_AVERAGE = re.compile(r"target|ema|teacher|averaged|average|momentum_", re.I)
_HELD = {"parameters()", "buffers()"}
_COPIED = 2  # a copy and what it is made of


def worst(source: Source) -> Iterator[Pattern]:
    """`if val_loss > best:` where the body keeps it as the best one."""
    for node in source.of(ast.If):
        for test in [node.test, *(node.test.values if isinstance(node.test, ast.BoolOp) else ())]:
            if not isinstance(test, ast.Compare) or len(test.ops) != 1:
                continue
            left, right = dotted(test.left), dotted(test.comparators[0])
            if not left or not _BEST.search(right) or _BEST.search(left):
                continue
            if _TURNED.search(left + right) or _is_attack(source, node):
                continue
            if not _is_kept(node, left):
                continue
            name = left.rpartition(".")[2]
            rises = isinstance(test.ops[0], ast.Gt | ast.GtE)
            falls = isinstance(test.ops[0], ast.Lt | ast.LtE)
            low, high = polarity(source, node, name, right.rpartition(".")[2])
            if (rises and low and not high) or (falls and high and not low):
                yield source.pattern("kept worst", test, left)


def _is_attack(source: Source, node: ast.If) -> bool:
    """Whether a condition keeps a perturbation of inputs, or is in a function for that."""
    names = {dotted(each) for part in node.body for each in source.walk(part)}
    names.add(getattr(source.scope(node), "name", ""))
    return any(_ATTACK.search(name) for name in names)


def _is_kept(node: ast.If, name: str) -> bool:
    """Whether the body of a condition gives the value to the name of the best one."""
    for statement in node.body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Assign) and any(
                _BEST.search(dotted(each))
                for target in part.targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name | ast.Attribute)
            ):
                return any(dotted(each) == name for each in ast.walk(part.value))
    return False


def reversed_copy(source: Source) -> Iterator[Pattern]:
    """`model.load_state_dict(target.state_dict())` in a loop: the network that learns is undone."""
    for node in source.of(ast.Call):
        if called(node) != "load_state_dict" or not node.args:
            continue
        given = node.args[0]
        if called(given) != "state_dict" or not isinstance(given, ast.Call):
            continue
        assert isinstance(node.func, ast.Attribute)
        to = ast.unparse(node.func.value)
        source_of = ast.unparse(given.func.value) if isinstance(given.func, ast.Attribute) else ""
        is_average, was_average = _AVERAGE.search(to), _AVERAGE.search(source_of)
        in_loop = any(isinstance(each, ast.For | ast.While) for each in source.above(node))
        inside = source.scope(node) is not source.tree
        if not was_average or is_average or "target" not in source_of.lower():
            continue
        at_start = _BEGINNING.search(getattr(source.scope(node), "name", ""))
        if not (in_loop or inside) or (at_start and not in_loop) or _COPIES.search(to):
            continue
        if not _is_copied_back(source, to, source_of):
            yield source.pattern("reversed copy", node, source_of)


def _is_copied_back(source: Source, model: str, target: str) -> bool:
    """Whether a loop or function, not a constructor, copies the model to the target as well."""
    return any(
        called(node) == "load_state_dict"
        and isinstance(node, ast.Call)
        and ast.unparse(node.func) == f"{target}.load_state_dict"
        and ast.unparse(node).count(f"{model}.state_dict") == 1
        and any(isinstance(each, ast.For | ast.While | ast.FunctionDef)
                and getattr(each, "name", "") != "__init__" for each in source.above(node))
        for node in source.of(ast.Call)
    )  # fmt: skip


def self_copy(source: Source) -> Iterator[Pattern]:
    """`target.load_state_dict(target.state_dict())`, or `target = deepcopy(target)` in a loop."""
    for node in source.of(ast.Call):
        if called(node) == "load_state_dict" and node.args and isinstance(node.func, ast.Attribute):
            to, given = ast.unparse(node.func.value), node.args[0]
            if _AVERAGE.search(to) and ast.unparse(given) == f"{to}.state_dict()":
                yield source.pattern("self copy", node, to)
        elif called(node) == "zip" and len(node.args) == _COPIED:
            one, other = (ast.unparse(each) for each in node.args)
            head, _, method = one.rpartition(".")
            is_loop = isinstance(source.parent(node), ast.For)
            if one == other and is_loop and method in _HELD and _AVERAGE.search(head):
                yield source.pattern("self copy", node, head)
    for assign in source.of(ast.Assign):
        value, name = assign.value, dotted(assign.targets[0])
        if (
            called(value) == "deepcopy"
            and isinstance(value, ast.Call)
            and [dotted(each) for each in value.args] == [name]
            and _AVERAGE.search(name)
            and any(isinstance(each, ast.For | ast.While) for each in source.above(assign))
        ):
            yield source.pattern("self copy", assign, name)
