"""Losses of outputs and targets whose shapes fit by broadcasting only."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_SHAPING = {"squeeze", "view", "reshape", "flatten", "expand", "unsqueeze", "expand_as"}


def _is_shaped(source: Source, scope: ast.AST, name: str) -> bool:
    return any(
        called(call) in _SHAPING
        and isinstance(call, ast.Call)
        and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(call))
        for call in source.walk(scope)
    )


@reads
def unsqueezed_output(source: Source) -> Iterator[Pattern]:
    """`loss_fn(model(x), y)` of outputs (N, 1), which the file squeezes at its other calls."""
    text = source.code(source.tree)
    if re.search(r"unsqueeze\(-?1\)|(view|reshape)\(\(?-1, 1\)|, None\]|keepdim|newaxis", text):
        return
    for name in {dotted(call.func) for call in source.of(ast.Call)} & source.models:
        calls = [call for call in source.of(ast.Call) if dotted(call.func) == name and call.args]
        flat = [call for call in calls if _is_flattened(source, call)]
        if not flat or len(flat) == len(calls):
            continue
        for call in calls:
            if call in flat or not _is_column_output(source, name):
                continue
            above = source.parent(call)
            pred = dotted(above.targets[0]) if isinstance(above, ast.Assign) else ""
            scope = source.scope(call)
            if pred and (_is_shaped(source, scope, pred) or f"{pred}[:, 0]" in text):
                continue
            for loss in source.walk(scope):
                if isinstance(loss, ast.Call) and _is_regression(source, loss) and loss.args:
                    given = loss.args[0]
                    if (given is call or (pred and dotted(given) == pred)) and len(loss.args) > 1:
                        yield source.pattern("column beside row", call, pred or name)


def _is_flattened(source: Source, call: ast.Call) -> bool:
    """Whether an output is used as `model(x).squeeze(-1)`, `model(x)[:, 0]` or the like."""
    above = source.parent(call)
    if isinstance(above, ast.Attribute):
        return above.attr in ("squeeze", "flatten", "view", "reshape")
    return isinstance(above, ast.Subscript) and ast.unparse(above.slice).strip("()") == ":, 0"


def _is_column_output(source: Source, name: str) -> bool:
    """Whether a model ends in one output: `nn.Linear(n, 1)` is the last layer that is made."""
    made = source.named(name.rpartition(".")[2])
    if len(made) != 1:
        return False
    model = next((each for each in ast.walk(made[0]) if isinstance(each, ast.Call)
                  and (called(each) in source.defined or called(each) in source.module_classes
                       or called(each) == "Sequential")), None)  # fmt: skip
    if model is None:
        return False
    body = source.module_classes.get(called(model)) or next(
        (each for each in source.of(ast.FunctionDef) if each.name == called(model)), model
    )  # fmt: skip
    layers = [each for each in source.walk(body) if isinstance(each, ast.Call)
              and called(each) == "Linear"]  # fmt: skip
    if not layers or "squeeze(" in source.code(body):
        return False
    last = max(layers, key=lambda each: (each.lineno, each.col_offset))
    return len(last.args) > 1 and whole(last.args[1]) == 1


def _is_regression(source: Source, loss: ast.Call) -> bool:
    if re.search(r"^(mse|smooth_l1|l1|huber)_loss$", called(loss)):
        return True
    made = source.named(dotted(loss.func).rpartition(".")[2])
    return len(made) == 1 and called(made[0]) in ("MSELoss", "SmoothL1Loss", "L1Loss", "HuberLoss")
