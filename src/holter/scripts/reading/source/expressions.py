"""What readers ask of expressions: constants, axes, and where a name comes from."""

import ast
from collections.abc import Iterator

from holter.scripts.reading.source.tree import Function, Source, called, dotted, parameters_of

HOMES = {
    *("torch", "F", "functional", "nn.functional", "torch.nn.functional"),
    *("np", "numpy", "jnp", "math"),
}


def tensor_of(call: ast.Call) -> ast.expr | None:
    """Return the tensor of `F.softmax(x, 1)` or `x.softmax(1)`."""
    if isinstance(call.func, ast.Attribute) and dotted(call.func.value) not in HOMES:
        return call.func.value
    return call.args[0] if call.args else None


def argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """Return an argument after the tensor, by its place or by one of its names."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    is_method = isinstance(call.func, ast.Attribute) and dotted(call.func.value) not in HOMES
    place += 0 if is_method else 1
    return call.args[place] if len(call.args) > place else None


def axis_of(call: ast.Call, place: int = 0) -> int | None:
    """Return the axis that a call such as `x.softmax(1)` or `F.softmax(x, dim=1)` is given."""
    return whole(argument(call, place, "dim", "axis"))


def unsigned(node: ast.expr | None) -> tuple[int, ast.expr | None]:
    """Return the sign in front of an expression, and the expression without it."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -1, node.operand
    return 1, node


def whole(node: ast.expr | None) -> int | None:
    """Return the whole number that an expression is, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = whole(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def made(source: Source, scope: ast.AST, name: str) -> list[ast.expr]:
    """Return the values that a scope assigns to a name; none if it is bound otherwise as well."""
    values = [value for other, value, _ in source.assigned(scope) if other == name]
    return values if values and len(values) == source.stores(scope, name) else []


def made_once(source: Source, scope: ast.AST, name: str) -> ast.expr | None:
    """Return the only value that a scope, or the module, assigns to a name."""
    for each in (scope, source.tree):
        values = made(source, each, name)
        if values:
            return values[0] if len(values) == 1 else None
        if name in parameters_of(each):
            return None
    return None


def resolved(source: Source, scope: ast.AST, node: ast.expr) -> ast.expr:
    """Return the expression behind a name that is assigned once, or the node itself."""
    for _ in range(4):
        if not isinstance(node, ast.Name):
            break
        value = made_once(source, scope, node.id)
        if value is None:
            break
        node = value
    return node


def number(source: Source, node: ast.expr | None) -> float | None:
    """Return the number that constants, defaults and options of the file make, or None."""
    if isinstance(node, ast.Constant):
        value = node.value
        return float(value) if isinstance(value, int | float) and value is not True else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(source, node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        left, right = number(source, node.left), number(source, node.right)
        if left is None or right is None:
            return None
        return _computed(node.op, left, right)
    name = dotted(node).rpartition(".")[2] if node is not None else ""
    found = set(_named(source, name)) if name else set()
    return found.pop() if len(found) == 1 else None


def _computed(operation: ast.operator, left: float, right: float) -> float | None:
    if isinstance(operation, ast.Add):
        return left + right
    if isinstance(operation, ast.Sub):
        return left - right
    if isinstance(operation, ast.Mult):
        return left * right
    if isinstance(operation, ast.Div | ast.FloorDiv) and right:
        return left // right if isinstance(operation, ast.FloorDiv) else left / right
    return None


def _named(source: Source, name: str) -> Iterator[float | None]:
    """Yield every number that the file gives a name: None for what is no constant."""
    yield from _assigned(source, name)
    yield from _defaults(source, name)
    yield from _passed(source, name)
    for call in source.of(ast.Call):
        if called(call) == "add_argument" and call.args:
            option = getattr(call.args[-1], "value", "")
            if isinstance(option, str) and option.lstrip("-").replace("-", "_") == name:
                yield from (_constant(k.value) for k in call.keywords if k.arg == "default")
        else:
            yield from (
                _constant(k.value)
                for k in call.keywords
                if k.arg == name and dotted(k.value).rpartition(".")[2] != name
            )


def _assigned(source: Source, name: str) -> Iterator[float | None]:
    for assign in source.of(ast.Assign):
        for target in assign.targets:
            pairs = [(target, assign.value)]
            if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
                pairs = list(zip(target.elts, assign.value.elts, strict=False))
            for each, value in pairs:
                if dotted(each).rpartition(".")[2] != name:
                    continue
                if dotted(value).rpartition(".")[2] != name:  # not `self.lr = lr`
                    yield _constant(value)
    for annotated in source.of(ast.AnnAssign):
        if dotted(annotated.target).rpartition(".")[2] == name and annotated.value is not None:
            yield _constant(annotated.value)


def _defaults(source: Source, name: str) -> Iterator[float | None]:
    for function in source.of(*Function.__args__):
        arguments = [*function.args.posonlyargs, *function.args.args]
        defaults = function.args.defaults
        pairs = list(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
        pairs += [(a, d) for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults,
                                         strict=True) if d is not None]  # fmt: skip
        yield from (_constant(value) for each, value in pairs if each.arg == name)


def _passed(source: Source, name: str) -> Iterator[float | None]:
    """Yield the constants that calls give to the parameter of a name, by its place."""
    for function in source.of(*Function.__args__):
        names = [each.arg for each in function.args.args]
        if name not in names:
            continue
        above = source.parent(function)
        of_class = isinstance(above, ast.ClassDef)
        place = names.index(name) - of_class
        called_as = function.name
        if isinstance(above, ast.ClassDef) and function.name == "__init__":
            called_as = above.name
        for call in source.of(ast.Call):
            if called(call) == called_as and 0 <= place < len(call.args):
                given = call.args[place]
                value = _constant(given)
                if value is None and isinstance(given, ast.Name) and given.id != name:
                    values = made(source, source.tree, given.id)
                    value = _constant(values[0]) if len(values) == 1 else None
                if dotted(given).rpartition(".")[2] != name:
                    yield value


def _constant(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.BinOp):
        left, right = _constant(node.left), _constant(node.right)
        return None if left is None or right is None else _computed(node.op, left, right)
    return None


def summands(node: ast.expr, sign: int = 1) -> Iterator[tuple[int, ast.expr]]:
    """Yield the signs and the parts of a sum; what is no sum is one part."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from summands(node.left, sign)
        yield from summands(node.right, -sign if isinstance(node.op, ast.Sub) else sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from summands(node.operand, -sign)
    else:
        yield sign, node
