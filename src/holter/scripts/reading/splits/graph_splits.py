"""Graphs whose held-out edges or nodes take part in training."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import TRAINING
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_EDGES = re.compile(
    r"(^|_)(edges?|edge_index|links?|pos|pairs|ratings|interactions|citations)(_|$)", re.I
)
_PASSING = re.compile(
    r"adj|propagat|laplac|a_hat|norm|message|gcn_matrix|csr|coo|sparse|graph", re.I
)
_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|test|te|va|holdout|held|dev)(_|$|\d)", re.I)
_MASKS = re.compile(r"(^|_)(mask|seen|known|exclude|blocked|history|filter)s?(_|$)", re.I)
_LOSSES = re.compile(r"cross_entropy|nll_loss|CrossEntropyLoss|criterion|loss_fn", re.I)


@reads
def held_out_edges(source: Source) -> Iterator[Pattern]:
    """`adj = normalise(edges)` where `edges` are split into training and held-out ones."""
    for scope in source.scopes:
        parts: dict[str, list[str]] = {}
        for name, value, _ in source.assigned(scope):
            if isinstance(value, ast.Subscript) and _EDGES.search(dotted(value.value)):
                parts.setdefault(dotted(value.value), []).append(name)
        for name, value, node in source.assigned(scope):
            if not isinstance(value, ast.Call) or not value.args:
                continue
            whole, names = dotted(value.args[0]), parts.get(dotted(value.args[0]), [])
            if not any(map(TRAINING.search, names)) or not any(map(_HELD_OUT.search, names)):
                continue
            function = called(value)
            if not (_PASSING.search(function) or _PASSING.search(name)):
                continue
            if _HELD_OUT.search(name) or re.search(r"full|all|known|true|count|deg|key", name):
                continue
            train = [each for each in names if TRAINING.search(each)]
            passed = [
                dotted(call.args[0])
                for call in source.of(ast.Call)
                if called(call) == function and call.args
            ]
            if not set(train) & set(passed) and _is_given_to_model(source, scope, name):
                yield source.pattern("held-out edges", node, whole)


def _is_given_to_model(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether an adjacency is an argument of the calls that make embeddings."""
    return any(
        source.scope(call) is scope
        and (called(call) in source.models or called(call) in ("encode", "encoder", "propagate"))
        and name in {dotted(each) for each in call.args}
        for call in source.of(ast.Call)
    )


@reads
def all_nodes(source: Source) -> Iterator[Pattern]:
    """`F.cross_entropy(model(x, adj), y)` of all nodes where a training mask is never used."""
    unpacked: dict[ast.AST, set[str]] = {}
    for node in source.of(ast.Assign):
        if isinstance(node.targets[0], ast.Tuple):
            unpacked.setdefault(source.scope(node), set()).update(
                each.id for each in node.targets[0].elts if isinstance(each, ast.Name)
            )
    for scope, names in unpacked.items():
        masks = [
            each for each in names if re.match(r"(train|tr)(_?(mask|idx|index|nodes))?$", each)
        ]
        held = [
            each
            for each in names
            if re.match(r"(val|valid|test|va|te)(_?(mask|idx|index|nodes))?$", each)
        ]
        if len(masks) != 1 or not held:
            continue
        loads = {
            each.id
            for each in source.of(ast.Name)
            if source.scope(each) is scope and isinstance(each.ctx, ast.Load)
        }
        indices = {
            dotted(each.slice) for each in source.of(ast.Subscript) if source.scope(each) is scope
        }
        if masks[0] in loads or not set(held) & loads & indices:
            continue
        for call in source.of(ast.Call):
            if source.scope(call) is scope and _LOSSES.search(called(call)) and len(call.args) > 1:
                given = [resolved(source, scope, each) for each in call.args[:2]]
                is_whole = all(not isinstance(each, ast.Subscript) for each in given)
                if is_whole and not any(each in ast.unparse(call) for each in (masks[0], "ignore")):
                    yield source.pattern("all nodes", call, masks[0])
                    break


@reads
def shared_mask(source: Source) -> Iterator[Pattern]:
    """`self.mask_test = self.mask_train` and then `self.mask_test[...] = True`: both are one."""
    for node in source.of(ast.Assign):
        name, other = dotted(node.targets[0]), dotted(node.value)
        if not name or not other or name == other:
            continue
        if not all(_MASKS.search(each.rpartition(".")[2]) for each in (name, other)):
            continue
        scope = source.scope(node)
        for write in source.of(ast.Assign):
            target = write.targets[0]
            if source.scope(write) is not scope or write.lineno <= node.lineno:
                continue
            if not isinstance(target, ast.Subscript) or dotted(target.value) not in (name, other):
                continue
            kept = other if dotted(target.value) == name else name
            uses = [
                each
                for each in _names(source)
                if dotted(each) == kept
                and isinstance(each.ctx, ast.Load)
                and each is not node.value
                and (source.scope(each) is not scope or each.lineno > write.lineno)
            ]
            again = [
                each
                for each in source.of(ast.Assign)
                if each is not node
                and node.lineno < each.lineno <= write.lineno
                and dotted(each.targets[0]) in (name, other)
            ]
            if uses and not again:
                yield source.pattern("shared mask", node, f"{name} and {other}")
                break


def _names(source: Source) -> list[ast.Attribute | ast.Name]:
    return [*source.of(ast.Attribute), *source.of(ast.Name)]
