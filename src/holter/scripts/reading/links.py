"""Graphs and recommenders: held-out edges and nodes in training, rows under another number."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted, parameters_of
from holter.scripts.reading.values import made_once, resolved

_EDGES = re.compile(
    r"(^|_)(edges?|edge_index|links?|pos|pairs|ratings|interactions|citations)(_|$)", re.I
)
_PASSING = re.compile(
    r"adj|propagat|laplac|a_hat|norm|message|gcn_matrix|csr|coo|sparse|graph", re.I
)
_TRAIN = re.compile(r"(^|_)(train|training|tr)(_|$|\d)", re.I)
_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|test|te|va|holdout|held|dev)(_|$|\d)", re.I)
_IDS = re.compile(r"(^|_)(ids?|nodes?|papers?|users?|items?|keys?|names?|accounts?|genes?)$", re.I)
_LABELS = re.compile(r"^(labels?|targets?|y|ys|truth|tags|classes)$", re.I)
_MASKS = re.compile(r"(^|_)(mask|seen|known|exclude|blocked|history|filter)s?(_|$)", re.I)
_LOSSES = re.compile(r"cross_entropy|nll_loss|CrossEntropyLoss|criterion|loss_fn", re.I)


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
            if not any(map(_TRAIN.search, names)) or not any(map(_HELD_OUT.search, names)):
                continue
            function = called(value)
            if not (_PASSING.search(function) or _PASSING.search(name)):
                continue
            if _HELD_OUT.search(name) or re.search(r"full|all|known|true|count|deg|key", name):
                continue
            train = [each for each in names if _TRAIN.search(each)]
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


def sorted_ids(source: Source) -> Iterator[Pattern]:
    """`{p: i for i, p in enumerate(sorted(ids))}` for edges of rows that are in another order."""
    for node in source.of(ast.DictComp):
        loop = node.generators[0]
        over = loop.iter
        if called(over) != "enumerate" or not isinstance(over, ast.Call) or not over.args:
            continue
        inner = over.args[0]
        if called(inner) not in ("sorted", "unique") or not isinstance(inner, ast.Call):
            continue
        ids = dotted(inner.args[0]) if inner.args else ""
        scope = source.scope(node)
        if not ids or not _IDS.search(ids) or ids not in parameters_of(scope):
            continue
        assert isinstance(scope, Function)
        above = source.parent(node)
        name = dotted(above.targets[0]) if isinstance(above, ast.Assign) else ""
        if name and _makes_pairs(source, scope, name) and _has_rows(source, scope, ids):
            yield source.pattern("sorted ids", node, ids)


def _makes_pairs(source: Source, scope: Function, name: str) -> bool:
    """Whether a function looks up both ends of pairs, and gives only these back."""
    looked_up = [
        node
        for node in source.of(ast.Subscript)
        if source.scope(node) is scope and dotted(node.value) == name
    ]
    returned = [node.value for node in source.of(ast.Return) if source.scope(node) is scope]
    is_kept = any(
        name in {dotted(part) for part in getattr(each, "elts", [each]) if part is not None}
        for each in returned
    )
    return len(looked_up) >= 2 and not is_kept


def _has_rows(source: Source, scope: Function, ids: str) -> bool:
    """Whether the ids are read beside the features, whose order they share."""
    place = parameters_of(scope).index(ids)
    for call in source.of(ast.Call):
        if called(call) != scope.name or len(call.args) <= place:
            continue
        given = dotted(call.args[place])
        if any(
            called(each) in ("sort", "sorted", "argsort", "unique") and given in ast.unparse(each)
            for each in source.of(ast.Call)
            if source.scope(each) is source.scope(call)
        ):
            return False
        for node in source.of(ast.Assign):
            target = node.targets[0]
            if (
                source.scope(node) is source.scope(call)
                and isinstance(target, ast.Tuple)
                and given
                and given in {dotted(each) for each in target.elts}
            ):
                return True
    return False


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


def fixed_negatives(source: Source) -> Iterator[Pattern]:
    """`self.neg = torch.randint(n_items, (n,))` in `__init__`: one negative for all epochs."""
    for body in source.of(ast.ClassDef):
        methods = {each.name: each for each in body.body if isinstance(each, Function)}
        init, item = methods.get("__init__"), methods.get("__getitem__")
        if init is None or item is None or re.search(r"val|test|eval", body.name, re.I):
            continue
        for node in source.of(ast.Assign):
            name = dotted(node.targets[0])
            if source.scope(node) is not init or not re.match(r"self\.neg", name):
                continue
            is_drawn = any(
                called(each) in ("randint", "integers", "choice", "random_integers")
                for each in ast.walk(node.value)
            )
            stores = [
                each
                for each in source.of(ast.Attribute)
                if dotted(each) == name and isinstance(each.ctx, ast.Store)
            ]
            if is_drawn and len(stores) == 1 and name in source.code(item):
                yield source.pattern("fixed negatives", node, name)


def stored_labels(source: Source) -> Iterator[Pattern]:
    """`truth = loader.dataset.labels` beside predictions of a loader that shuffles."""
    for loop in source.of(ast.For):
        scope, loader = source.scope(loop), dotted(loop.iter)
        if not isinstance(scope, Function) or loader not in parameters_of(scope):
            continue
        gathered = {
            dotted(call.func).rpartition(".")[0]
            for call in source.walk(loop)
            if isinstance(call, ast.Call) and called(call) in ("append", "extend")
        }
        if not gathered:
            continue
        stored = [
            node
            for node in source.of(ast.Attribute)
            if source.scope(node) is scope
            and dotted(node.value) == f"{loader}.dataset"
            and _LABELS.match(node.attr)
        ]
        if stored and _shuffles(source, scope, loader):
            yield source.pattern("labels of stored order", stored[0], dotted(stored[0]))


def _shuffles(source: Source, scope: Function, loader: str) -> bool:
    """Whether every loader that a function is given shuffles: by a constant, for any split."""
    place = parameters_of(scope).index(loader)
    given = [
        call.args[place]
        for call in source.of(ast.Call)
        if called(call) == scope.name and len(call.args) > place
    ]
    if not given:
        return False
    makers = []
    for each in given:
        home = source.scope(each)
        value = resolved(source, home, each)
        if isinstance(value, ast.Subscript):  # `loaders[1]` of a list of loaders
            every = resolved(source, home, value.value)
            if isinstance(every, ast.ListComp | ast.GeneratorExp):
                value = every.elt
        if isinstance(value, ast.Name):
            value = _of_tuple(source, home, value.id) or value
        makers.append(_loader(source, value))
    return any(makers)


def _of_tuple(source: Source, scope: ast.AST, name: str) -> ast.expr | None:
    """Return what makes each element that a name is unpacked from: `a, b = (f(d) for d in s)`."""
    for node in source.of(ast.Assign):
        target = node.targets[0]
        if (
            source.scope(node) is scope
            and isinstance(target, ast.Tuple)
            and name in {dotted(each) for each in target.elts}
            and isinstance(node.value, ast.GeneratorExp | ast.ListComp)
        ):
            return node.value.elt
    return made_once(source, scope, name)


def _loader(source: Source, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if called(value) != "DataLoader":
        made = [
            node.value
            for function in source.of(ast.FunctionDef)
            if function.name == called(value)
            for node in source.of(ast.Return)
            if source.scope(node) is function
        ]
        if len(made) != 1 or called(made[0] or value) != "DataLoader":
            return False
        value = made[0]  # type: ignore[assignment]
    return any(
        each.arg == "shuffle" and getattr(each.value, "value", None) is True
        for each in getattr(value, "keywords", ())
    )


def sparse_spread(source: Source) -> Iterator[Pattern]:
    """`x / (x[train_mask].std(0) + 1e-8)` of words that no training row may have."""
    text = source.code(source.tree)
    if not re.search(r"words?\b|vocab|bag|multi_?hot|tf_?idf|one_?hot", text, re.I):
        return
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            of = (
                value.func.value
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
                else None
            )
            if called(value) != "std" or not isinstance(of, ast.Subscript):
                continue
            rows = dotted(of.slice)
            if not re.search(r"(train|tr)_?(mask|idx|index|nodes|rows)$", rows):
                continue
            for node in source.of(ast.BinOp):
                if source.scope(node) is scope and isinstance(node.op, ast.Div):
                    tiny = _tiny(node.right, name)
                    whole = dotted(of.value) in {dotted(each) for each in ast.walk(node.left)}
                    if tiny and whole and not _is_mended(source, scope, name):
                        yield source.pattern("tiny spread", node, name)


def _tiny(node: ast.expr, name: str) -> bool:
    """Whether a denominator is a deviation with a number that keeps it from zero, and no more."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        size = getattr(node.right, "value", None)
        return dotted(node.left) == name and isinstance(size, float) and size <= 1e-5
    if called(node) in ("clamp", "clamp_min", "clip") and isinstance(node, ast.Call):
        sizes = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
        return name in ast.unparse(node) and any(
            isinstance(each, float) and each <= 1e-5 for each in sizes
        )
    return False


def _is_mended(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether a scope replaces small deviations: `std[std < 0.05] = 1.0`."""
    return any(
        isinstance(node.targets[0], ast.Subscript) and dotted(node.targets[0].value) == name
        for node in source.of(ast.Assign)
        if source.scope(node) is scope
    )


def _names(source: Source) -> list[ast.Attribute | ast.Name]:
    return [*source.of(ast.Attribute), *source.of(ast.Name)]
