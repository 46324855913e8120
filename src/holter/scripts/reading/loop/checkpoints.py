"""Checkpoints that a resumed run restores in part."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_STATE = re.compile(
    r"^(optim\w*|opt\w*|sched\w*|lr_sched\w*|scaler|best\w*|ema\w*|epoch|step)$", re.I
)


@reads
def unrestored(source: Source) -> Iterator[Pattern]:
    """A checkpoint that holds `best`, and a resume that reads the epoch but not `best`."""
    saved = {}
    parts: set[ast.AST] = set()
    for made in source.of(ast.Dict):
        keys = [key for key in made.keys if isinstance(key, ast.Constant)]
        names = {key.value for key in keys if isinstance(key.value, str)}
        if not _is_saved(source, made) or not any(re.search(r"model|net|state", n) for n in names):
            continue
        parts |= set(source.walk(made))
        saved.update({key.value: key for key in keys})
    if not saved or not any(called(call) == "load" for call in source.of(ast.Call)):
        return
    text = {each.value for each in source.of(ast.Constant)
            if isinstance(each.value, str) and each not in parts}  # fmt: skip
    if any(isinstance(each, ast.Call) and called(each) in ("items", "keys", "values", "update")
           and re.search(r"ck|checkpoint|state|saved|loaded", ast.unparse(each.func))
           and "state_dict" not in ast.unparse(each.func)
           for each in source.of(ast.Call)):  # fmt: skip
        return
    state = [key for key in saved if isinstance(key, str) and _STATE.match(key)]
    read = [key for key in state if key in text and _is_read(source, key)]
    resumes = any(re.match(r"^(optim|opt|epoch|step|sched)", key) for key in read)
    for key in state:
        if resumes and key not in text and not re.search(r"acc|f1|auc|metric", key) and (
            _matters(source, key, saved[key])
        ):  # fmt: skip
            yield source.pattern("lost on resume", saved[key], key)


def _is_saved(source: Source, made: ast.Dict) -> bool:
    """Whether a dict is given to `torch.save`, directly, by a name or by a function."""
    above = source.parent(made)
    if called(above) == "save" if above is not None else False:
        return True
    if isinstance(above, ast.Assign):
        name = dotted(above.targets[0])
        return any(called(call) == "save" and dotted(call.args[0]) == name
                   for call in source.of(ast.Call) if call.args)  # fmt: skip
    if isinstance(above, ast.Return):
        name = getattr(source.scope(made), "name", "")
        return any(called(call) == "save" and call.args and called(call.args[0]) == name
                   for call in source.of(ast.Call))  # fmt: skip
    return False


def _is_read(source: Source, key: str) -> bool:
    """Whether something is read by a key: an index, `get`, or one of several keys of a loop."""
    for each in source.of(ast.Constant):
        if each.value != key:
            continue
        above = source.parent(each)
        is_index = isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Load)
        is_listed = isinstance(above, ast.Tuple | ast.List)
        if is_index or is_listed or called(above) in ("get", "pop") if above else False:
            return True
    return False


def _matters(source: Source, key: str, node: ast.AST) -> bool:
    """Whether what is lost changes the run: the best value is compared, an optimizer goes on."""
    made = source.parent(node)
    assert isinstance(made, ast.Dict)
    value = made.values[made.keys.index(node)]  # type: ignore[arg-type]
    if key.startswith("best"):
        name = dotted(value)
        return bool(name) and any(
            name in {dotted(side) for side in (each.left, *each.comparators)}
            for each in source.of(ast.Compare)
        )
    return called(value) == "state_dict" and not re.match("ema", key)
