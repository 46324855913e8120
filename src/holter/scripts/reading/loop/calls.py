"""Methods that are named but not called, and results that nobody takes."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted, of_self

_METHODS = {"step", "zero_grad", "backward", "train", "eval", "set_epoch", "unscale_", "update"}
_MODES = {"train", "eval"}
# Methods of tensors that return another one. Not those that modules have as well, such as `to`.
_PURE = {
    *("clamp", "clamp_min", "clamp_max", "clip", "relu", "sigmoid", "tanh", "softmax"),
    *("log_softmax", "masked_fill", "permute", "transpose", "reshape", "squeeze", "unsqueeze"),
    *("flip", "roll", "detach", "nan_to_num", "index_fill", "masked_scatter", "contiguous"),
    *("index_add", "scatter_add", "index_copy"),
}
_WITHOUT_ARGUMENTS = {"relu", "sigmoid", "tanh", "detach", "contiguous"}
_WITH_OR_WITHOUT = {"squeeze", "nan_to_num", "transpose", "clip"}
_PURE_FUNCTIONS = {
    *("clamp", "clip", "relu", "sigmoid", "tanh", "softmax", "log_softmax", "where", "flip"),
    *("permute", "transpose", "reshape", "squeeze", "unsqueeze", "roll", "nan_to_num"),
    *("dropout", "normalize", "layer_norm", "gelu", "leaky_relu", "elu"),
}
_HOMES = {"torch", "F", "functional", "nn.functional", "torch.nn.functional"}
_IN_PLACE = {"inplace", "out"}
_ARRAYS = {"np", "numpy"}
_MOST_ARGUMENTS = 3  # of `np.clip` without the array that it writes to
# Blocks that run a statement to see whether it works, or how long it takes.
_TRIALS = re.compile(r"raises|assert|warns|suppress|tim(e|er|ing)\b|profile", re.I)


@reads
def uncalled(source: Source) -> Iterator[Pattern]:
    """Statements such as `optimizer.step`, and `if self.train:` in a module."""
    for node in source.of(ast.Expr):
        value = node.value
        if isinstance(value, ast.Attribute) and value.attr in _METHODS and dotted(value):
            yield source.pattern("uncalled", node, dotted(value))
    own = {name for body in source.module_classes.values() for name in _own(body)}
    for name, body in source.module_classes.items():
        for part in source.walk(body):
            for test in _tests(part):
                if of_self(test) in _MODES - own:
                    yield source.pattern("uncalled condition", test, f"{name}.{of_self(test)}")


def _own(body: ast.ClassDef) -> Iterator[str]:
    """Yield the names that a class gives a value or a property of its own."""
    for node in ast.walk(body):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield of_self(node)
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield node.name
    for statement in body.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            yield from (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))


def _tests(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return [node.test, *_tests(node.test)]
    if isinstance(node, ast.BoolOp):
        return list(node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    return []


@reads
def discarded(source: Source) -> Iterator[Pattern]:
    """Statements such as `logits.clamp(-5, 5)`, whose result is lost."""
    for node in source.of(ast.Expr):
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if _writes_in_place(call) or _is_trial(source, node):
            continue
        home, name = dotted(call.func.value), call.func.attr
        if home in _HOMES:
            if name in _PURE_FUNCTIONS:
                yield source.pattern("discarded", node, f"{home}.{name}")
        elif name in _PURE and _fits(call, name) and not _is_object(source, home, name):
            yield source.pattern("discarded", node, name)


def _writes_in_place(call: ast.Call) -> bool:
    """Whether an argument asks for it: `out=x`, `F.relu(x, True)`, `np.clip(x, 0, 1, x)`."""
    if {keyword.arg for keyword in call.keywords} & _IN_PLACE or len(call.args) > _MOST_ARGUMENTS:
        return True
    return any(isinstance(each, ast.Constant) and each.value is True for each in call.args)


def _is_trial(source: Source, node: ast.AST) -> bool:
    """Whether a statement is there to fail, to take time, or to be shown by a notebook."""
    if source.has_cells and source.parent(node) is source.tree:
        return True
    return any(
        (isinstance(above, ast.Try) and above.handlers)
        or (
            isinstance(above, ast.With)
            and any(_TRIALS.search(ast.unparse(item.context_expr)) for item in above.items)
        )
        for above in source.above(node)
    )


def _fits(call: ast.Call, name: str) -> bool:
    """Whether a tensor's method could be given these arguments."""
    given = bool(call.args or call.keywords)
    return name in _WITH_OR_WITHOUT or given == (name not in _WITHOUT_ARGUMENTS)


def _is_object(source: Source, home: str, name: str) -> bool:
    """Whether the owner of a method is no tensor: a module, an instance, a thing that is opened."""
    head, last = home.partition(".")[0], home.rpartition(".")[2]
    if name in source.defined or home == "self" or head in ("plt", "ax", "fig", "tf", "sys"):
        return True
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in source.of(ast.Import, ast.ImportFrom)
        for alias in node.names  # type: ignore[attr-defined]
    }
    if head in imported:
        return home not in _ARRAYS
    for node in source.of(ast.Assign, ast.withitem):
        if isinstance(node, ast.withitem):
            targets = [node.optional_vars] if node.optional_vars else []
            made = node.context_expr
        else:
            assert isinstance(node, ast.Assign)
            targets, made = list(node.targets), node.value
        if any(dotted(each).rpartition(".")[2] == last for each in targets):
            makers = set(_makers(made))
            if isinstance(node, ast.withitem) or "open" in makers or any(map(_is_class, makers)):
                return True
    return False


def _makers(made: ast.expr) -> Iterator[str]:
    """Yield what is called to make something: `Memory` and `to` of `Memory(8).to(device)`."""
    while isinstance(made, ast.Call):
        yield called(made)
        if not isinstance(made.func, ast.Attribute):
            return
        made = made.func.value


def _is_class(name: str) -> bool:
    return name[:1].isupper() and name not in ("Tensor", "Parameter", "Variable", "FloatTensor")
