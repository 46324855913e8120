"""Modules that are in the wrong mode: never set back to training, or set to it too late."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number
from holter.scripts.reading.source.loops import (
    LOOPS,
    blocks,
    functions_of,
    optimizers,
    reached,
    trains,
)
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_MODAL = re.compile(
    r"Dropout|BatchNorm|SyncBatchNorm|DropPath|StochasticDepth|dropout|drop_path|^(resnet|vgg"
    r"|densenet|efficientnet|mobilenet|vit_|convnext|regnet)|from_pretrained|create_model|RReLU"
    r"|TransformerEncoderLayer|TransformerDecoderLayer|^Transformer$"
)


@reads
def lost(source: Source) -> Iterator[Pattern]:
    """`model.eval()` in a training loop that never calls `model.train()` again."""
    trained = {name for call in optimizers(source) for each in call.args[:1]
               for name in _owners(source, each)}  # fmt: skip
    if not trained or not _depends_on_mode(source):
        return
    for loop in source.of(*LOOPS):
        if any(isinstance(each, LOOPS) for each in source.above(loop)) or not trains(source, loop):
            continue
        inside = reached(source, loop)
        if any(called(each) in ("train", "set_train_mode") for each in inside):
            continue
        if any(each in inside for each in optimizers(source)):
            continue  # each turn trains a model from scratch
        if any(_sets_back(source, call, loop) for call in source.of(ast.Call)):
            continue
        for call in _evaluations(source, loop, trained):
            yield source.pattern("training mode lost", call, ast.unparse(call.func)[:-5])
            break


def _owners(source: Source, node: ast.expr) -> set[str]:
    """Return the last names of what `parameters` is called on in an argument of an optimizer."""
    nodes = list(source.walk(node))
    for each in source.walk(node):
        if isinstance(each, ast.Name):
            for value in source.named(each.id):
                nodes += source.walk(value)
    return {dotted(each.func.value).rpartition(".")[2] for each in nodes
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
            and called(each) in ("parameters", "named_parameters")}  # fmt: skip


def _depends_on_mode(source: Source) -> bool:
    """Whether the file builds layers that act differently in training."""
    for call in source.of(ast.Call):
        if _MODAL.search(called(call)):
            rates = [number(source, each) for each in call.args[:1]]
            rates += [number(source, each.value) for each in call.keywords if each.arg == "p"]
            if "ropout" not in called(call) or 0 not in rates:
                return True
        for keyword in call.keywords:
            if keyword.arg and _MODAL.search(keyword.arg) and number(source, keyword.value) != 0:
                return True
    return any(_MODAL.search(each.attr) for each in source.of(ast.Attribute) if dotted(each))


def _sets_back(source: Source, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a call of `train` may run within a loop, past what calls show."""
    if called(call) != "train":
        return False
    scope = source.scope(call)
    if scope is source.scope(loop):
        return False
    name = getattr(scope, "name", "")
    is_called = any(called(each) == name for each in source.of(ast.Call))
    return not is_called  # a hook, a property or a context manager


def _evaluations(source: Source, loop: ast.AST, trained: set[str]) -> Iterator[ast.Call]:
    """Yield the calls of `eval` of a trained model that every turn of a loop may make."""
    for call in source.walk(loop):
        if not isinstance(call, ast.Call) or _is_at_end(source, call, loop):
            continue
        if _is_eval(call) and _name(call) in trained:
            yield call
        for function in functions_of(source, call):
            names = parameters_of(function)
            for inner in source.walk(function):
                if not isinstance(inner, ast.Call) or not _is_eval(inner):
                    continue
                name = _name(inner)
                if name in names:
                    place = names.index(name) - isinstance(source.parent(function), ast.ClassDef)
                    given = [each.value for each in call.keywords if each.arg == name]
                    given += call.args[place : place + 1] if place >= 0 else []
                    name = dotted(given[0]).rpartition(".")[2] if given else ""
                if name in trained:
                    yield inner


def _is_eval(call: ast.Call) -> bool:
    return (called(call) == "eval" and isinstance(call.func, ast.Attribute) and not call.args) or (
        called(call) == "train" and [getattr(a, "value", None) for a in call.args] == [False]
    )


def _name(call: ast.Call) -> str:
    return (
        dotted(call.func.value).rpartition(".")[2] if isinstance(call.func, ast.Attribute) else ""
    )


def _is_at_end(source: Source, node: ast.AST, loop: ast.AST) -> bool:
    """Whether a statement is followed by the end of the loop: it breaks, returns or is last."""
    for above in source.above(node):
        if above is loop:
            return False
        if isinstance(above, ast.If) and (
            any(isinstance(each, ast.Break | ast.Return) for each in source.walk(above))
            or (
                re.search(r"==|last|final|stop|done", ast.unparse(above.test))
                and "%" not in ast.unparse(above.test)
            )
        ):
            return True
        if isinstance(above, ast.ExceptHandler):
            return True
    return False


@reads
def undone(source: Source) -> Iterator[Pattern]:
    """`model.backbone.eval()` right before `model.train()`, which sets all of it back."""
    for block in blocks(source):
        for place, statement in enumerate(block):
            parts = _evaluated(source, statement)
            if not parts:
                continue
            for later in block[place + 1 :]:
                whole = _mode_of(later, "train")
                if whole and any(part.startswith(f"{whole}.") for part in parts):
                    yield source.pattern("evaluation mode undone", later, min(parts))
                if not whole and not _evaluated(source, later):
                    break


def _mode_of(statement: ast.stmt, mode: str) -> str:
    """Return the module of a statement `model.train()`."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return ""
    call = statement.value
    if called(call) != mode or call.args or not isinstance(call.func, ast.Attribute):
        return ""
    return dotted(call.func.value)


def _evaluated(source: Source, statement: ast.stmt) -> set[str]:
    """Return the parts of models that a statement, or a loop of one, sets to evaluation."""
    if isinstance(statement, ast.For) and not statement.orelse:
        body = statement.body
        while len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse:
            body = body[0].body
        names = {_mode_of(each, "eval") for each in body}
        if names != {dotted(statement.target)} or "" in names:
            return set()
        listed: list[ast.AST] = [statement.iter]
        if isinstance(statement.iter, ast.Name):
            listed += source.named(statement.iter.id)
        parts = {dotted(each) for value in listed for each in source.walk(value)
                 if isinstance(each, ast.Attribute)}  # fmt: skip
        return {part.replace(".modules", ".x").replace(".children", ".x") for part in parts} - {""}
    part = _mode_of(statement, "eval")
    return {part} if "." in part else set()


@reads
def always_dropped(source: Source) -> Iterator[Pattern]:
    """`F.dropout(x, p)` in a module: without `training=` it drops in evaluation as well."""
    text = {each.id for each in source.of(ast.Name)} | source.defined | set(source.module_classes)
    if any(re.search(r"(^|_)mc(_|$)|monte|bayes|MCDropout|uncertain|simcse", each, re.I)
           for each in text):  # fmt: skip
        return
    if not any(called(call) == "eval" for call in source.of(ast.Call)):
        return
    for call in source.of(ast.Call):
        if dotted(call.func) not in ("F.dropout", "nn.functional.dropout", "F.dropout2d",
                                     "torch.nn.functional.dropout"):  # fmt: skip
            continue
        is_given = len(call.args) > 2 or any(
            each.arg in ("training", None) for each in call.keywords
        )
        scope = source.scope(call)
        body = source.parent(scope)
        if is_given or not isinstance(body, ast.ClassDef) or body.name not in source.module_classes:
            continue
        if isinstance(scope, Function) and not any(
            isinstance(each, ast.If | ast.IfExp) and "training" in ast.unparse(
                each.test)
            for each in source.above(call)
        ):  # fmt: skip
            yield source.pattern("dropout in every mode", call, body.name)
