"""What the best weights are chosen by: a figure of the test data, or the loss of the training."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import TEST, VALIDATION
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_VALID = re.compile(r"(^|_)(val|vali|valid|validation|dev|va|vl)(_|$|\d)", re.I)
_TRAIN = re.compile(r"(^|_)(train|training|trn)(_|$|\d)", re.I)
_SAVES = {"save", "save_pretrained", "deepcopy", "clone", "state_dict", "save_checkpoint", "dump"}
_DEEPEST = 4
_SHOWN = {
    *("print", "info", "append", "write", "debug", "log", "add_scalar", "set_postfix", "format"),
    *("round", "float", "save"),
}
_HELD = re.compile(r"(^|_)(test|tst|te)(_|$|\d)", re.I)
_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|dev)(_|$|\d)", re.I)
_BEST = re.compile(r"best", re.I)
_KEEPING = {"save", "deepcopy", "state_dict", "save_pretrained", "save_checkpoint"}


@reads
def by_test(source: Source) -> Iterator[Pattern]:
    """`acc = evaluate(model, test_loader)` and `if acc > best:` beside a validation part."""
    if not _has_validation(source):
        return
    for branch, figure in _choices(source):
        made = _figure(source, branch, figure)
        if made is None:
            continue
        given = _parts(made)
        is_held = [each for each in given if _VALID.search(each) and not _TRAIN.search(each)]
        if any(map(TEST.search, given)) and not is_held:
            yield source.pattern("chosen on test", branch, min(filter(TEST.search, given)))


@reads
def by_training(source: Source) -> Iterator[Pattern]:
    """`if np.mean(losses) < best:` in a loop that computes a validation loss for nothing."""
    choices = list(_choices(source))
    for branch, figure in choices:
        loop = _loop(source, branch)
        if loop is None or not _is_of_steps(source, loop, figure):
            continue
        held = [
            dotted(each)
            for node in source.walk(loop)
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and any(map(_VALID.search, _parts(node.value)))
            for target in node.targets
            for each in source.walk(target)
            if isinstance(each, ast.Name)
        ]
        tests = [each.test for each in source.walk(loop) if isinstance(each, ast.If)]
        asked = {dotted(each) for test in tests for each in source.walk(test)}
        given = {
            dotted(each)
            for call in source.walk(loop)
            if isinstance(call, ast.Call) and called(call) not in _SHOWN
            for part in call.args
            for each in source.walk(part)
        }
        if held and not asked & set(held) and not given & set(held):
            yield source.pattern("chosen on training", branch, ast.unparse(figure)[:40])


def _choices(source: Source) -> Iterator[tuple[ast.If, ast.expr]]:
    """Yield branches in a loop that keep weights if a figure beats the best one so far."""
    for branch in source.of(ast.If):
        test = branch.test
        if isinstance(test, ast.BoolOp):
            test = next((each for each in test.values if isinstance(each, ast.Compare)), test)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        if not isinstance(test.ops[0], ast.Gt | ast.Lt | ast.GtE | ast.LtE):
            continue
        if _loop(source, branch) is None:
            continue
        body = [node for part in branch.body for node in source.walk(part)]
        kept = {
            ast.unparse(each)
            for node in body
            if isinstance(node, ast.Assign)
            for target in node.targets
            for each in (target.elts if isinstance(target, ast.Tuple) else [target])
        }
        if not any(called(each) in _SAVES for each in body):
            continue
        for figure, best in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
            best_name = best.left if isinstance(best, ast.BinOp) else best
            if ast.unparse(best_name) in kept and ast.unparse(figure) not in kept:
                yield branch, figure


def _loop(source: Source, node: ast.AST) -> ast.For | ast.While | None:
    """Return the loop over epochs around a branch: it trains, by itself or by a function."""
    for each in source.above(node):
        if isinstance(each, ast.For | ast.While):
            return each
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


def _figure(source: Source, branch: ast.If, figure: ast.expr, depth: int = 0) -> ast.Call | None:
    """Return the call that a figure is from, in the loop around the branch."""
    while isinstance(figure, ast.Subscript | ast.Attribute):
        figure = figure.value
    if isinstance(figure, ast.Call):
        if isinstance(figure.func, ast.Attribute) and not figure.args:
            return _figure(source, branch, figure.func.value, depth + 1)
        return figure
    if not isinstance(figure, ast.Name) or depth > _DEEPEST:
        return None
    loop = _loop(source, branch)
    scope = source.scope(branch)
    if loop is None:
        return None
    every = [
        node
        for node in source.bindings(scope, figure.id)
        if loop in [*source.above(node)] and node.lineno < branch.lineno
    ]
    if len(every) != 1 or not isinstance(every[0], ast.Assign) or every[0].value is None:
        return None
    target, value = every[0].targets[0], every[0].value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for name, each in zip(target.elts, value.elts, strict=False):
            if dotted(name) == figure.id:
                return _figure(source, branch, each, depth + 1)
    return _figure(source, branch, value, depth + 1)


def _parts(call: ast.Call) -> list[str]:
    """Return the names of data that a call is given: `test_loader`, `loaders["test"]`."""
    found = []
    for given in (*call.args, *(each.value for each in call.keywords)):
        for each in ast.walk(given):
            if isinstance(each, ast.Name | ast.Attribute):
                found.append(dotted(each).rpartition(".")[2])
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                found.append(each.value)
    return [each for each in found if len(each) < 30]


def _has_validation(source: Source) -> bool:
    """Whether a file makes a validation part, which it could choose by."""
    served = re.compile(r"load|_dl$|_iter$|set$|data$|_ds$|_mask$|_idx$|^(x|y)_|_df$|_(x|y)$", re.I)
    stored: list[ast.Name | ast.Attribute] = [*source.of(ast.Name), *source.of(ast.Attribute)]
    for node in stored:
        if not isinstance(node.ctx, ast.Store):
            continue
        name = dotted(node).rpartition(".")[2]
        if _VALID.search(name) and (served.search(name) or re.fullmatch(r"val|valid|dev", name)):
            return True
    return any(
        isinstance(key, ast.Constant) and key.value in ("val", "valid", "dev", "validation")
        for table in source.of(ast.Dict)
        for key in table.keys
    )


def _is_of_steps(source: Source, loop: ast.AST, figure: ast.expr) -> bool:
    """Whether a figure is made of the losses of the steps that train, in the same loop."""
    steps = [
        each
        for each in source.walk(loop)
        if isinstance(each, ast.For)
        and each is not loop
        and {"backward", "step"} <= {called(call) for call in source.walk(each)}
    ]
    if not steps:
        return False
    names = {each.id for each in source.walk(figure) if isinstance(each, ast.Name)}
    for node in source.walk(loop):  # one name in between: `mean = np.mean(losses)`
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) in names:
            names |= {each.id for each in source.walk(node.value) if isinstance(each, ast.Name)}
    losses = {
        dotted(call.func.value)
        for step in steps
        for call in source.walk(step)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and call.args
        and "loss" in ast.unparse(call.args[0])
    }
    losses |= {
        dotted(each.target)
        for step in steps
        for each in source.walk(step)
        if isinstance(each, ast.AugAssign) and "loss" in ast.unparse(each.value)
    }
    return bool(names & (losses - {""}))


@reads
def chosen_on_test(source: Source) -> Iterator[Pattern]:
    """`if acc_test > best_test:` keeps the weights where there is a validation figure as well."""
    for branch in source.of(ast.If):
        test = branch.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        figure, best = dotted(test.left), dotted(test.comparators[0])
        if (
            not figure
            or not best
            or not isinstance(test.ops[0], ast.Gt | ast.Lt | ast.GtE | ast.LtE)
        ):
            continue
        if re.search(r"best|top|max|min", figure) and not re.search(r"best", best):
            figure, best = best, figure
        if not re.search(r"best", best) or not TEST.search(figure) or VALIDATION.search(figure):
            continue
        scope = source.scope(branch)
        stored = {
            each.id
            for each in source.of(ast.Name)
            if source.scope(each) is scope and isinstance(each.ctx, ast.Store)
        }
        kept = {
            dotted(each)
            for part in branch.body
            for each in ast.walk(part)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        acts = any(
            called(each) in ("save", "deepcopy", "clone", "state_dict")
            for part in branch.body
            for each in ast.walk(part)
        )
        if any(VALIDATION.search(each) for each in stored) and (
            acts or any(map(VALIDATION.search, kept))
        ):
            yield source.pattern("chosen on test", branch, figure)


@reads
def selected_on_test(source: Source) -> Iterator[Pattern]:
    """`acc = accuracy(model, test_loader)` and `if acc > best:` where validation data exists."""
    names = {each.id for each in source.of(ast.Name)} | {
        each.attr for each in source.of(ast.Attribute)
    }
    if not any(_HELD_OUT.search(each) and re.search(r"loader|_dl|_set|data|_ds|iter", each)
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
        if held and not any(map(_HELD_OUT.search, given)):
            yield source.pattern("chosen on test", branch, held[0])
