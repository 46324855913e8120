"""Two views of a sample: the same one twice, own halves as targets, and one direction twice."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import made_once, number, resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_CONTRAST = re.compile(
    r"nt_?xent|simclr|info_?nce|contrast|byol|simsiam|moco|barlow|vicreg|two_?(view|crop|aug)s?|"
    r"twocrop|views?\b|siamese",
    re.I,
)
_VIEWS = re.compile(r"two|view|crop|pair|contrast|simclr|multi", re.I)
_SAME = {"t", "T", "mT", "clone", "detach", "contiguous", "view"}
_MASKS = re.compile(r"fill_diagonal|eye\(|mask|inf\b|1e9|1e4|tri[lu]|diag|!=|~|-1e")
_JOINED = {"cat", "concat", "vstack", "concatenate"}
_CLASSES = {"cross_entropy", "nll_loss"}
_OF_LABELS = re.compile(r"cross_entropy|nll_loss|^(criterion|loss_fn|ce|xent)$")
_LOSSES = re.compile(r"loss|crit|entropy|xent|^(d|ce|kl|mse|sim|cos\w*|nce)$|similarity", re.I)


@reads
def same_view(source: Source) -> Iterator[Pattern]:
    """`z1, z2 = model(v1), model(v1)` while `v2` is never read."""
    for scope in source.scopes:
        pairs = _unpacked(source, scope)
        if not pairs:
            continue
        made: dict[str, list[tuple[str, ast.Call]]] = {}
        for name, value, _ in source.assigned(scope):
            if isinstance(value, ast.Call) and value.args:
                made.setdefault(ast.unparse(value), []).append((name, value))
        calls = [each for each in source.of(ast.Call) if source.scope(each) is scope]
        for found in made.values():
            if len(found) > 1 and len({name for name, _ in found}) > 1:
                yield from _ignored(source, scope, found[1][1], pairs)
        for call in calls:
            given = [each for each in call.args if isinstance(each, ast.Call) and each.args]
            texts = [ast.unparse(each) for each in given]
            if 1 < len(texts) > len(set(texts)) and "triplet" not in called(call).lower():
                twice = next(each for each in given if texts.count(ast.unparse(each)) > 1)
                yield from _ignored(source, scope, twice, pairs)


def _unpacked(source: Source, scope: ast.AST) -> list[set[str]]:
    """Return the names that are unpacked together: `(v1, v2), _`."""
    found = []
    targets = [loop.target for loop in source.of(ast.For) if source.scope(loop) is scope]
    targets += [assign.targets[0] for assign in source.of(ast.Assign)
                if source.scope(assign) is scope
                and not isinstance(assign.value, ast.Tuple)]  # fmt: skip
    for target in targets:
        for node in source.walk(target):
            if isinstance(node, ast.Tuple):
                names = {each.id for each in node.elts if isinstance(each, ast.Name)}
                found += [names] if len(names) > 1 else []
    return found


def _ignored(
    source: Source, scope: ast.AST, call: ast.Call, pairs: list[set[str]]
) -> Iterator[Pattern]:
    """Yield a pattern if a name that belongs to the argument of a call is never used."""
    name = dotted(call.args[0])
    for names in pairs:
        others = names - {name} if name in names else set()
        for other in sorted(others):
            if re.match(r"_|labels?$|y$|targets?$|idx$|ind", other):
                continue
            if not _is_read(source, scope, other) and _alike(name, other):
                yield source.pattern("same view", call, other)
                return


def _is_read(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether a name is read other than to move it: `v2 = v2.to(device)`."""
    moves = {value for other, value, _ in source.assigned(scope) if other == name}
    return any(
        node.id == name
        and isinstance(node.ctx, ast.Load)
        and source.scope(node) is scope
        and not any(each in moves for each in source.above(node))
        for node in source.of(ast.Name)
    )


def _alike(one: str, other: str) -> bool:
    """Whether two names are of one kind: `v1` and `v2`, `anchor` and `positive`."""
    triplet = r"^(x_?)?(a|p|n|anc(hor)?|pos(itive)?|neg(ative)?|q(uery)?|k(ey)?)(_\w+)?s?$"
    if re.match(triplet, one) and re.match(triplet, other):
        return True
    end = r"(\d+|_?(a|b|i|j|q|k|one|two|other|first|second|left|right|weak|strong|aug|orig))$"
    stem = [re.sub(end, "", each) for each in (one, other)]
    return stem[0] == stem[1] or (len(one) == len(other) and one[:-1] == other[:-1])


@reads
def repeated_view(source: Source) -> Iterator[Pattern]:
    """`view = transform(image); return view, view`: both views are the same."""
    if not _CONTRAST.search(source.code(source.tree)):
        return
    for function in source.of(ast.FunctionDef):
        body = source.parent(function)
        is_method = function.name in ("__getitem__", "__call__") and isinstance(body, ast.ClassDef)
        if not is_method and function.name != "two_views":
            continue
        named = body.name if isinstance(body, ast.ClassDef) else ""
        for node in source.walk(function):
            if not isinstance(node, ast.Return) or node.value is None:
                continue
            for each in source.walk(node.value):
                twice = _twice(each)
                made = made_once(source, function, twice) if twice else None
                is_drawn = isinstance(made, ast.Call) and re.search(
                    r"transform|aug|base|tf|self", dotted(made.func)
                )
                is_pair = function.name != "__getitem__" or _VIEWS.search(named)
                if is_drawn and is_pair:
                    yield source.pattern("repeated view", node, twice)


def _twice(node: ast.AST) -> str:
    """Return the name that a tuple, a list or `stack` holds twice."""
    if not isinstance(node, ast.Tuple | ast.List):
        return ""
    names = [dotted(each) for each in node.elts]
    return next((name for name in names if name and names.count(name) > 1), "")


@reads
def same_direction(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(logits, y) + cross_entropy(logits, y)`: one direction is counted twice."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Add):
            continue
        scope = source.scope(node)
        one, other = (resolved(source, scope, _unweighed(source, each))
                      for each in (node.left, node.right))  # fmt: skip
        if one is other or not isinstance(one, ast.Call) or not isinstance(other, ast.Call):
            continue
        if not _LOSSES.search(called(one)) or dotted(one.func) != dotted(other.func):
            continue
        texts = [_canonical(source, scope, each) for each in (one, other)]
        plain = all(_is_plain(each) for each in (*one.args, *other.args))
        if texts[0] == texts[1] and plain and len(one.args) > 1 and not _are_changed(
            source, scope, one, other
        ):  # fmt: skip
            yield source.pattern("same direction", node, called(one))


def _unweighed(source: Source, node: ast.expr) -> ast.expr:
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        if number(source, node.right) is not None:
            node = node.left
        elif isinstance(node.op, ast.Mult) and number(source, node.left) is not None:
            node = node.right
        else:
            break
    while isinstance(node, ast.Call) and called(node) == "mean" and not node.args:
        node = tensor_of(node) or node.func
    return node


def _is_plain(node: ast.expr) -> bool:
    """Whether an argument has the same value each time: a name, or a view of one."""
    while isinstance(node, ast.Call) and called(node) in _SAME and not node.args:
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return bool(dotted(node))


def _canonical(source: Source, scope: ast.AST, call: ast.Call) -> str:
    """Return a call without the transposition of labels, which have one axis."""
    first, *others = call.args
    names = []
    for each in others:
        inner = _untransposed(each)
        made = resolved(source, scope, inner)
        is_label = called(made) == "arange" or _OF_LABELS.search(called(call))
        names.append(ast.unparse(inner if is_label else each))
    options = [f"{each.arg}={ast.unparse(each.value)}" for each in call.keywords]
    return ", ".join([ast.unparse(first), *names, *options])


def _untransposed(node: ast.expr) -> ast.expr:
    """Return `y` of `y.t()` and `y.T`."""
    while True:
        if isinstance(node, ast.Call) and called(node) == "t" and not node.args:
            node = tensor_of(node) or node.func
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            node = node.value
        else:
            return node


def _are_changed(source: Source, scope: ast.AST, one: ast.Call, other: ast.Call) -> bool:
    """Whether a name is given another value between two statements."""
    first, last = sorted((one.lineno, other.lineno))
    return first != last and any(
        isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and first <= node.lineno <= last
        and dotted(node.value if isinstance(node, ast.Subscript) else node)
        in {dotted(each) for each in one.args}
        for node in source.walk(scope)
    )


@reads
def own_positives(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(z @ z.t(), arange(2 * n))`: each row is its own positive, or not hidden."""
    for call in source.of(ast.Call):
        if called(call) not in _CLASSES or len(call.args) < 2:
            continue
        scope = source.scope(call)
        scores = similarity(source, scope, call.args[0])
        if scores is None:
            continue
        labels = _label(source, scope, call.args[1])
        text = source.code(scope)
        if _is_identity(labels):
            yield source.pattern("own positives", call, ast.unparse(call.args[1]))
        elif scope is not source.tree and _is_joined(source, scope, scores) and not (
            _MASKS.search(text)
        ):  # fmt: skip
            yield source.pattern("unmasked self", call, scores)


def similarity(source: Source, scope: ast.AST, node: ast.expr) -> str | None:
    """Return `z` of `z @ z.t() / temperature`."""
    for _ in range(6):
        node = _latest(source, scope, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            left = _latest(source, scope, node.left)
            is_product = isinstance(left, ast.BinOp | ast.Call) or isinstance(node.op, ast.Div)
            node = node.left if is_product else node.right
            continue
        break
    one: ast.expr
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        one, other = node.left, node.right
    elif isinstance(node, ast.Call) and called(node) in ("mm", "matmul") and node.args:
        one, other = ([tensor_of(node) or node.func, *node.args] if len(node.args) == 1
                      else node.args[:2])  # fmt: skip
    else:
        return None
    if ast.unparse(other) in {f"{ast.unparse(one)}{end}" for end in (
            ".t()", ".T", ".mT", ".transpose(0, 1)", ".transpose(1, 0)", ".transpose(-1, -2)",
            ".transpose(-2, -1)")}:  # fmt: skip
        return dotted(one) or None
    return None


def _latest(source: Source, scope: ast.AST, node: ast.expr) -> ast.expr:
    """Return what a name was assigned, if every assignment is by the same kind of statement."""
    return resolved(source, scope, node)


def _label(source: Source, scope: ast.AST, node: ast.expr) -> ast.expr:
    node = resolved(source, scope, node)
    while isinstance(node, ast.Call) and called(node) in ("to", "cuda", "long"):
        node = resolved(source, scope, tensor_of(node) or node.func)
    return node


def _is_identity(node: ast.expr) -> bool:
    """Whether labels are `arange(2 * n)`, in one piece or in two that follow each other."""
    if not isinstance(node, ast.Call):
        return False
    if called(node) == "arange":
        return len(node.args) == 1 or ast.unparse(node.args[0]) == "0"
    if called(node) not in _JOINED or not node.args:
        return False
    parts = node.args[0].elts if isinstance(node.args[0], ast.Tuple | ast.List) else []
    if len(parts) != 2 or not all(called(each) == "arange" for each in parts):
        return False
    one, other = ([ast.unparse(a) for a in each.args] for each in parts
                  if isinstance(each, ast.Call))  # fmt: skip
    end = one[-1] if len(one) == 1 or one[0] == "0" else ""
    return bool(end) and len(other) > 1 and other[0] == end


def _is_joined(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether a tensor is that of two views, one below the other."""
    for other, value, _ in source.assigned(scope):
        if other == name and any(called(each) in _JOINED for each in source.walk(value)):
            return True
    return False
