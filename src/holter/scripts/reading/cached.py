"""What is kept of a shuffled loader, the scale of constants, and figures of test data."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.origins import Frame, origins
from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import number

_HELD = re.compile(r"(^|_)(test|tst|te)(_|$|\d)", re.I)
_VALID = re.compile(r"(^|_)(val|valid|validation|dev)(_|$|\d)", re.I)
_BEST = re.compile(r"best", re.I)
_GEOMETRIC = {
    *("ToTensor", "Resize", "CenterCrop", "ColorJitter", "Grayscale", "Pad"),
    *("AutoAugment", "RandAugment", "TrivialAugmentWide"),
}
_KEEPING = {"save", "deepcopy", "state_dict", "save_pretrained", "save_checkpoint"}


def read_by_number(source: Source) -> Iterator[Pattern]:
    """`kept = [teacher(x) for x, _ in loader]`, then `zip(kept, loader)` of a shuffled loader."""
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            if not isinstance(value, ast.ListComp) or len(value.generators) != 1:
                continue
            loader = dotted(value.generators[0].iter)
            calls = [each for each in ast.walk(value.elt) if isinstance(each, ast.Call)]
            if not loader or not calls or not _is_shuffled(source, scope, value.generators[0].iter):
                continue
            for node in source.walk(scope):
                given = node.iter if isinstance(node, ast.For) else None
                while isinstance(given, ast.Call) and called(given) in ("enumerate", "tqdm"):
                    given = given.args[0] if given.args else None
                if given is None or node.lineno <= value.lineno:  # type: ignore[attr-defined]
                    continue
                is_zipped = isinstance(given, ast.Call) and called(given) == "zip" and {
                    name, loader} <= set(map(dotted, given.args))  # fmt: skip
                is_indexed = dotted(given) == loader and any(
                    isinstance(each, ast.Subscript) and dotted(each.value) == name
                    for each in source.walk(node)
                )
                if is_zipped or is_indexed:
                    yield source.pattern("cache by number", node, name)


def _is_shuffled(source: Source, scope: ast.AST, node: ast.expr) -> bool:
    """Whether a name is a loader that shuffles, also if a function returns it among others."""
    if not isinstance(node, ast.Name):
        return False
    values = list(origins(source, node, Frame(scope)))
    if len(values) != 1 or called(values[0].node) != "DataLoader":
        return False
    made = values[0].node
    return isinstance(made, ast.Call) and any(
        each.arg == "shuffle" and getattr(each.value, "value", None) is True
        for each in made.keywords
    )


def bytes_after_scaling(source: Source) -> Iterator[Pattern]:
    """`ToTensor()` and `Normalize((129.3, ...), (68.2, ...))`: the image is in [0, 1] by then."""
    for call in source.of(ast.Call):
        if called(call) != "Normalize" or len(call.args) < 2:
            continue
        if source.imported.get(dotted(call.func).partition(".")[0], "torchvision") != "torchvision":
            continue
        around = source.parent(call)
        steps = around.elts if isinstance(around, ast.List | ast.Tuple) else []
        before = steps[: steps.index(call)] if call in steps else []
        if any(called(each) not in _GEOMETRIC and not re.match("Random", called(each))
               for each in before):  # fmt: skip
            continue  # a step of its own may multiply by 255
        means = _numbers(source, call, call.args[0])
        if means and min(means) > 2 and any(called(each) == "ToTensor" for each in before):
            yield source.pattern("constants of bytes", call, ast.unparse(call.args[0]))


def _numbers(source: Source, call: ast.Call, node: ast.expr) -> list[float]:
    if isinstance(node, ast.Name):
        values = list(origins(source, node, Frame(source.scope(call))))
        node = values[0].node if len(values) == 1 else node
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    found = [number(source, each) for each in parts]
    return [each for each in found if each is not None] if None not in found else []


def selected_on_test(source: Source) -> Iterator[Pattern]:
    """`acc = accuracy(model, test_loader)` and `if acc > best:` where validation data exists."""
    names = {each.id for each in source.of(ast.Name)} | {
        each.attr for each in source.of(ast.Attribute)
    }
    if not any(_VALID.search(each) and re.search(r"loader|_dl|_set|data|_ds|iter", each)
               for each in names):  # fmt: skip
        return
    for branch in source.of(ast.If):
        test = branch.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        if not isinstance(test.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE):
            continue
        sides = [test.left, test.comparators[0]]
        figures = [each for each in sides if isinstance(each, ast.Name)
                   and not _BEST.search(each.id)]  # fmt: skip
        keeps = any(called(each) in _KEEPING for part in branch.body for each in source.walk(part))
        if len(figures) != 1 or not _BEST.search(ast.unparse(test)) or not keeps:
            continue
        if _HELD.search(figures[0].id) or not any(
            isinstance(each, ast.For | ast.While) for each in source.above(branch)
        ):
            continue
        made = [node.value for node in source.bindings(source.scope(branch), figures[0].id)
                if isinstance(node, ast.Assign) and node.lineno < branch.lineno]  # fmt: skip
        value = made[-1] if made else None
        while isinstance(value, ast.Subscript | ast.Attribute):
            value = value.value
        given = [dotted(each).rpartition(".")[2] for each in value.args] if isinstance(
            value, ast.Call) else []  # fmt: skip
        held = [each for each in given if _HELD.search(each)]
        if held and not any(map(_VALID.search, given)):
            yield source.pattern("chosen on test", branch, held[0])


def unused_weights(source: Source) -> Iterator[Pattern]:
    """`state = torch.load("teacher.pt")` that is shown only, or not read at all."""
    for scope in source.scopes:
        for name, value, node in source.assigned(scope):
            if dotted(getattr(value, "func", value)) not in ("torch.load", "load_file"):
                continue
            path = ast.unparse(value)
            if not re.search(r"teacher|ckpt|checkpoint|weights|model|state|best|pretrain", path):
                continue
            reads = [each for each in source.of(ast.Name) if each.id == name
                     and isinstance(each.ctx, ast.Load)]  # fmt: skip
            if source.stores(scope, name) == 1 and all(_is_shown(source, each) for each in reads):
                yield source.pattern("unused weights of file", node, name)


def _is_shown(source: Source, name: ast.Name) -> bool:
    """Whether a name is read by `len` or `print` alone, in a statement without another effect."""
    above = source.parent(name)
    if isinstance(above, ast.Attribute) and above.attr == "keys":
        above = source.parent(source.parent(above) or above)
    if not isinstance(above, ast.Call) or called(above) not in ("len", "print", "sorted", "list"):
        return False
    statement = next(each for each in source.above(name) if isinstance(each, ast.stmt))
    shown = statement.value if isinstance(statement, ast.Expr) else None
    return called(shown or statement) in ("print", "info", "debug")
