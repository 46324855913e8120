"""State that an average, a resumed run or a generator carries over, or loses."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.loops import (
    EPOCH,
    optimizers,
    outer_loops,
    reached,
    trains,
)
from holter.scripts.reading.source import Pattern, Source, called, dotted, of_self

_STATE = re.compile(
    r"^(optim\w*|opt\w*|sched\w*|lr_sched\w*|scaler|best\w*|ema\w*|epoch|step)$", re.I
)
_START = re.compile(r"(swa|ema|avg|average)_?start|start_?(swa|ema|avg)", re.I)
_SEEDS = {"torch.manual_seed", "np.random.seed", "numpy.random.seed", "random.seed",
          "seed_everything", "set_seed", "torch.random.manual_seed", "fix_seed"}  # fmt: skip
_RANDOM = re.compile(
    r"^(randn?|randn_like|rand_like|randint|randperm|shuffle|permutation|sample|choice|DataLoader"
    r"|dropout|Dropout|normal_?|uniform_?|bernoulli|multinomial)$"
)


def early_average(source: Source) -> Iterator[Pattern]:
    """`if epoch < swa_start: swa.update_parameters(model)`: the average of the first epochs."""
    for node in source.of(ast.If):
        test = node.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        left, right = dotted(test.left), dotted(test.comparators[0])
        if isinstance(test.ops[0], ast.Lt | ast.LtE):
            is_before = bool(_START.search(right)) and not _START.search(left)
        elif isinstance(test.ops[0], ast.Gt | ast.GtE):
            is_before = bool(_START.search(left)) and not _START.search(right)
        else:
            continue
        updates = [each for statement in node.body for each in source.walk(statement)
                   if called(each) == "update_parameters"]  # fmt: skip
        if is_before and updates:
            yield source.pattern("average before its start", test, left)


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


def reseeded(source: Source) -> Iterator[Pattern]:
    """`torch.manual_seed(0)` in every epoch: each has the same order, noise and dropout."""
    if any(re.search(r"rng_state|fork_rng|preserve_rng|getstate|set_state", each.attr)
           for each in source.of(ast.Attribute)):  # fmt: skip
        return
    for call in source.of(ast.Call):
        if dotted(call.func) not in _SEEDS or len(call.args) != 1:
            continue
        if not _is_fixed(source, call.args[0]) or any(
            isinstance(each, ast.If) for each in source.above(call)
        ):
            continue
        for loop in outer_loops(source, call):
            if not _is_epochs(loop) or not trains(source, loop):
                continue
            inside = reached(source, loop)
            builds = any(each in inside for each in optimizers(source))
            names = [called(each) for each in inside if isinstance(each, ast.Call)]
            everywhere = [called(each) for each in source.of(ast.Call)]
            is_random = any(map(_RANDOM.match, names)) or "DataLoader" in everywhere
            if not builds and is_random and _is_same_kind(call, inside):
                yield source.pattern("seed in every epoch", call, ast.unparse(call))
                break


def _is_epochs(loop: ast.AST) -> bool:
    if isinstance(loop, ast.While):
        return bool(EPOCH.search(ast.unparse(loop.test)))
    return isinstance(loop, ast.For) and bool(
        EPOCH.search(ast.unparse(loop.target)) or EPOCH.search(ast.unparse(loop.iter))
    )


def _is_fixed(source: Source, seed: ast.expr) -> bool:
    """Whether a seed is the same in every turn: a number or a setting."""
    if isinstance(seed, ast.Constant):
        return type(seed.value) is int
    name = dotted(seed)
    last = name.rpartition(".")[2]
    if name.isupper() or re.fullmatch(r"(args|cfg|config|opt|conf)\.\w*seed\w*", name):
        return True
    values = source.named(last)
    return bool(values) and all(isinstance(v, ast.Constant) for v in values) and "." not in name


def _is_same_kind(call: ast.Call, inside: list[ast.AST]) -> bool:
    """Whether the generator that is seeded is one that the training draws from."""
    home = dotted(call.func).partition(".")[0]
    if home in ("torch", "seed_everything", "set_seed", "fix_seed"):
        return True
    return any(isinstance(each, ast.Call) and dotted(each.func).startswith(f"{home}.")
               and _RANDOM.match(called(each)) for each in inside)  # fmt: skip


def same_batches(source: Source) -> Iterator[Pattern]:
    """`rng = random.Random(self.seed)` in `__iter__` of a sampler: every epoch is the same."""
    for body in source.of(ast.ClassDef):
        if not any(dotted(base).endswith("Sampler") for base in body.bases):
            continue
        if re.search(r"val|test|eval|determin|distributed|fixed", body.name, re.I):
            continue
        for function in body.body:
            if not isinstance(function, ast.FunctionDef) or function.name != "__iter__":
                continue
            for call in source.walk(function):
                if not isinstance(call, ast.Call) or len(call.args) != 1:
                    continue
                if called(call) not in ("Random", "default_rng", "RandomState", "manual_seed"):
                    continue
                seed = call.args[0]
                is_constant = isinstance(seed, ast.Constant) and type(seed.value) is int
                if is_constant or (of_self(seed) and not _is_advanced(source, of_self(seed))):
                    yield source.pattern("same batches in every epoch", call, body.name)


def _is_advanced(source: Source, name: str) -> bool:
    """Whether anything but the constructor gives an attribute another value."""
    if "epoch" in name:
        return True
    for node in source.of(ast.Attribute):
        is_made = getattr(source.scope(node), "name", "") == "__init__"
        if node.attr == name and isinstance(node.ctx, ast.Store) and not is_made:
            return True
    return any(called(call) == "set_epoch" for call in source.of(ast.Call))
