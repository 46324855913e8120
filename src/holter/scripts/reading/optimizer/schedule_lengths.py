"""Schedules of another length than their steps, for one group only, or of the wrong direction."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.optimizer.updates import is_accumulating
from holter.scripts.reading.source.loops import LOOPS, condition, outer_loops, trains, updates
from holter.scripts.reading.source.metric_names import polarity
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_LENGTHS = {
    "OneCycleLR": ("total_steps", 2),
    "CosineAnnealingLR": ("T_max", 1),
    "LinearLR": ("total_iters", 3),
    "PolynomialLR": ("total_iters", 1),
    "get_linear_schedule_with_warmup": ("num_training_steps", 2),
    "get_cosine_schedule_with_warmup": ("num_training_steps", 2),
    "get_scheduler": ("num_training_steps", 3),
}
_SAMPLES = re.compile(r"len\([\w.]*(\.dataset|set|_ds|data|samples|corpus|_x|x_train|X)\)")
_COUNTED = re.compile(r"/|ceil|len\(\w*(loader|_dl|dl|batches)\w*\)|steps_per_epoch", re.I)
_SCHEDULER = re.compile(r"sched", re.I)
_TURNED = re.compile(r"neg|minus|inv|loss_or|improve|reduc|one_minus", re.I)


@reads
def misjudged(source: Source) -> Iterator[Pattern]:
    """`T_max=epochs` stepped by batches, or `total = epochs * len(dataset)`."""
    for name, made in _schedulers(source):
        texts = _lengths(source, made)
        for step in _steps(source, name):
            loops = outer_loops(source, step)
            if len(loops) < 2 or not trains(source, loops[0]) or not _is_batches(source, loops[0]):
                continue
            if condition(source, step, loops[0]) is not None:
                continue
            counts = {ast.unparse(loop.iter.args[-1]) for loop in loops[1:]
                      if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
                      and called(loop.iter) in ("range", "trange") and loop.iter.args}  # fmt: skip
            epochs = {each for each in counts if re.search("epoch", each, re.I)}
            lasts = {each.rpartition(".")[2] for each in epochs}
            for text in texts:
                if text in epochs or (text.rpartition(".")[2] in lasts and text.isidentifier()):
                    yield source.pattern("schedule of epochs", made, text)
                elif _SAMPLES.search(text) and not _COUNTED.search(text):
                    yield source.pattern("schedule of samples", made, text)
            texts = [*texts, *_expanded(source, made)]
            of_loop = {owner for _, owner in updates(source, loops[0])}
            rests = [rest for call, _ in updates(source, loops[0])
                     if is_accumulating(source, call, loops[0])
                     for rest in _remainders(source, call, loops[0])]  # fmt: skip
            if len(of_loop) == 1 and any(
                re.search(rf"/\s*\(?([\w.]+\.)?{re.escape(rest)}\b", text)
                for rest in rests for text in texts
            ):  # fmt: skip
                yield source.pattern("schedule by micro-batch", step, name)


@reads
def micro_batches(source: Source) -> Iterator[Pattern]:
    """A length of `epochs * len(loader)` of a schedule that is stepped once in `accum` batches."""
    for name, made in _schedulers(source):
        texts = _expanded(source, made)
        for step in _steps(source, name):
            loop = next((each for each in source.above(step) if isinstance(each, LOOPS)), None)
            if loop is None or not isinstance(loop, ast.For) or not trains(source, loop):
                continue
            test = condition(source, step, loop)
            for call, _ in updates(source, loop):
                rests = _remainders(source, call, loop)
                is_beside = test is not None and condition(source, call, loop) is test
                if not rests or not is_beside or not is_accumulating(source, call, loop):
                    continue
                over = re.escape(ast.unparse(_looped(loop.iter)))
                for text in texts:
                    if re.search(rf"len\({over}\)", text) and "/" not in text and not any(
                        re.search(rf"\b{re.escape(rest)}\b", text) for rest in rests
                    ):  # fmt: skip
                        yield source.pattern("schedule of micro-batches", made, rests[0])


def _looped(over: ast.expr) -> ast.expr:
    """Return the loader of `enumerate(tqdm(loader), 1)`."""
    while (
        isinstance(over, ast.Call) and called(over) in ("enumerate", "tqdm", "track") and over.args
    ):
        over = over.args[0]
    return over


def _expanded(source: Source, made: ast.Call) -> list[str]:
    """Return the codes of the length of a schedule, each name in it replaced by its only value."""
    kind = called(made)
    if kind not in _LENGTHS:
        return []
    keyword, place = _LENGTHS[kind]
    values = [each.value for each in made.keywords if each.arg == keyword]
    found = []
    for value in values or made.args[place : place + 1]:
        text = ast.unparse(value)
        for _ in range(4):
            text = re.sub(r"\bself\.", "", text)
            for name in set(re.findall(r"(?<![\w.])[a-z_]\w*(?![\w(.])", text)):
                known = source.named(name)
                if len(known) == 1 and _is_count(known[0]):
                    given = ast.unparse(known[0])
                    if not re.search(rf"\b{name}\b", given):
                        text = re.sub(rf"(?<![\w.]){name}(?![\w(.])", f"({given})", text)
        found.append(text)
    return found


def _is_count(value: ast.expr) -> bool:
    """Whether a value is computed from others: `len(loader) // accum`."""
    if isinstance(value, ast.Call):
        return called(value) in ("int", "ceil", "max", "len")
    return not isinstance(value, ast.Constant)


def _is_batches(source: Source, loop: ast.AST) -> bool:
    """Whether a loop runs over batches: it has updates of its own, and no loop that has them."""
    inner = [each for each in source.walk(loop) if isinstance(each, LOOPS) and each is not loop]
    return not any(updates(source, each) for each in inner) and bool(updates(source, loop))


def _schedulers(source: Source) -> Iterator[tuple[str, ast.Call]]:
    for node in source.of(ast.Assign):
        name = dotted(node.targets[0]).rpartition(".")[2]
        is_one = bool(_SCHEDULER.search(name)) and len(source.named(name)) == 1
        if is_one and isinstance(node.value, ast.Call):
            yield name, node.value


def _steps(source: Source, name: str) -> list[ast.Call]:
    return [call for call in source.of(ast.Call) if not call.args and not call.keywords
            and dotted(call.func).endswith(f"{name}.step")
            and dotted(call.func).split(".")[-2] == name]  # fmt: skip


def _lengths(source: Source, made: ast.Call) -> list[str]:
    """Return the codes of what a schedule is given as its length."""
    kind, scope = called(made), source.scope(made)
    values: list[ast.expr] = []
    if kind in _LENGTHS:
        keyword, place = _LENGTHS[kind]
        values = [each.value for each in made.keywords if each.arg == keyword]
        values = values or list(made.args[place : place + 1])
    elif kind == "LambdaLR" and len(made.args) > 1:
        body: ast.AST = made.args[1]
        for function in source.of(*Function.__args__):
            if function.name == dotted(body).rpartition(".")[2]:
                body = function
        inside = source.walk(body)
        own = {each.arg for each in inside if isinstance(each, ast.arg)}
        values = [each for each in inside if isinstance(each, ast.Name) and each.id not in own
                  and isinstance(each.ctx, ast.Load)]  # fmt: skip
    found = []
    for value in values:
        if isinstance(value, ast.Name):
            known = [
                made_
                for where in (scope, source.tree)
                for other, made_, _ in source.assigned(where)
                if other == value.id
            ]
            found += [ast.unparse(each) for each in known[:1]]
            if kind == "LambdaLR":
                continue
        found.append(ast.unparse(value))
    return found


def _remainders(source: Source, step: ast.Call, loop: ast.AST) -> list[str]:
    """Return the names of the numbers of batches that an update is made of."""
    test = condition(source, step, loop)
    if test is None:
        return []
    return [dotted(each.right).rpartition(".")[2] for each in source.walk(test.test)
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod)
            and dotted(each.right)]  # fmt: skip


@reads
def one_group(source: Source) -> Iterator[Pattern]:
    """`optimizer.param_groups[0]["lr"] = lr` of an optimizer with two groups."""
    writes = [
        node
        for node in source.of(ast.Assign)
        for target in node.targets
        if re.fullmatch(r"[\w.]+\.param_groups\[0\]\['lr'\]", ast.unparse(target))
    ]
    changed = [(node, target) for node in source.of(ast.Assign) for target in node.targets]
    others = [node for node, target in changed if node not in writes and _is_rate(target)]
    others += [node for node in source.of(ast.AugAssign) if _is_rate(node.target)]  # type: ignore[misc]
    if others or len(writes) != 1:
        return
    (write,) = writes
    name = ast.unparse(write.targets[0]).partition(".param_groups")[0].rpartition(".")[2]
    for value in source.named(name):
        if not isinstance(value, ast.Call) or not value.args:
            continue
        groups: ast.expr = value.args[0]
        if isinstance(groups, ast.Name):
            given = source.named(groups.id)
            groups = given[0] if len(given) == 1 else groups
        if not isinstance(groups, ast.List) or len(groups.elts) < 2:
            continue
        keys = [{getattr(key, "value", None) for key in each.keys}
                for each in groups.elts if isinstance(each, ast.Dict)]  # fmt: skip
        if len(keys) == len(groups.elts) and not any("lr" in each for each in keys):
            yield source.pattern("schedule of one group", write, name)


def _is_rate(target: ast.expr) -> bool:
    return bool(re.search(r"\[['\"]lr['\"]\]$", ast.unparse(target)))


@reads
def plateau(source: Source) -> Iterator[Pattern]:
    """`ReduceLROnPlateau(optimizer)` that is given an accuracy: it waits for it to fall."""
    for node in source.of(ast.Assign):
        made = node.value
        if called(made) != "ReduceLROnPlateau" or not isinstance(made, ast.Call):
            continue
        given = [each.value for each in made.keywords if each.arg == "mode"] or made.args[1:2]
        mode = getattr(given[0], "value", None) if given else "min"
        name = dotted(node.targets[0])
        if any(each.arg is None for each in made.keywords) or len(source.named(
                name.rpartition(".")[2])) != 1 or not name:  # fmt: skip
            continue
        for call in source.of(ast.Call):
            if not dotted(call.func).endswith(f"{name.rpartition('.')[2]}.step"):
                continue
            metric = call.args[0] if call.args else None
            metric = next((each.value for each in call.keywords if each.arg == "metrics"), metric)
            label = _label(metric)
            if not label or _TURNED.search(label):
                continue
            low, high = polarity(source, call, label, "")
            if (mode == "min" and high and not low) or (mode == "max" and low and not high):
                yield source.pattern("reversed plateau", call, label)


def _label(node: ast.expr | None) -> str:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return dotted(node).rpartition(".")[2] if node is not None else ""
