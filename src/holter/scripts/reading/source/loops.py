"""What readers ask of loops: what they run, where they train, and what is an optimizer."""

import ast
import re
from collections.abc import Iterator, Sequence

from holter.scripts.reading.source.expressions import HOMES
from holter.scripts.reading.source.tree import Function, Source, called, dotted

LOOPS = (ast.For, ast.While, ast.AsyncFor)
EPOCH = re.compile(r"epoch|(^|_)ep(_|$)", re.I)
OPTIMIZER = re.compile(r"opt(im|imizer|im_|imiser)?s?(_|$|\d)|^opt|optim|adam|sgd", re.I)
_KINDS = re.compile(
    r"^(SGD|Adam|AdamW|RAdam|NAdam|Adamax|RMSprop|Rprop|Adagrad|Adadelta|LBFGS|Lion|Adafactor"
    r"|AdamW8bit|LAMB|Muon|SparseAdam|ASGD)$"
)
_COMMON = {"step", "get", "items", "append", "update", "add", "join", "copy", "format", "sum"}
NO_GRADIENT = {"no_grad", "inference_mode"}


def owner_of(node: ast.AST) -> ast.expr | None:
    """Return what a method is called on, or None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value
    return None


def unplaced(node: ast.expr) -> ast.expr:
    """Return what builds a module, past `.to(device)` and the like."""
    while called(node) in ("to", "cuda", "train", "float", "apply", "eval"):
        inner = owner_of(node)
        if inner is None:
            break
        node = inner
    return node


def functions_of(source: Source, call: ast.Call) -> list[Function]:
    """Return the function of the file that a call may enter."""
    name = called(call)
    is_other = isinstance(call.func, ast.Attribute) and dotted(call.func.value) in HOMES
    if is_other or name in _COMMON or not name:
        return []
    return [each for each in source.of(*Function.__args__) if each.name == name]


def reached(source: Source, node: ast.AST) -> list[ast.AST]:
    """Return the nodes in a subtree, and in the functions of the file that it calls."""
    found: list[ast.AST] = []
    entered: set[ast.AST] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        for each in source.walk(part):
            found.append(each)
            if isinstance(each, ast.Call):
                new = [f for f in functions_of(source, each) if f not in entered]
                entered.update(new)
                waiting += new
    return found


def trains(source: Source, node: ast.AST) -> bool:
    """Whether a loop or function runs a backward pass, itself or in what it calls."""
    return any(called(each) == "backward" for each in reached(source, node))


def optimizers(source: Source) -> Iterator[ast.Call]:
    """Yield the calls that build an optimizer of torch, with what they are given."""
    for call in source.of(ast.Call):
        if _KINDS.match(called(call)) and (call.args or call.keywords):
            yield call


def is_optimizer(source: Source, node: ast.expr) -> bool:
    """Whether an object is an optimizer, by its name or by what it is given."""
    name = dotted(node).rpartition(".")[2]
    if any(_KINDS.match(called(value)) for value in source.named(name)):
        return True
    return bool(OPTIMIZER.search(name)) and not re.search(r"sched", name, re.I)


def updates(source: Source, region: ast.AST) -> list[tuple[ast.Call, str]]:
    """Return the calls of `step` in a region that update weights, and of which optimizer."""
    found = []
    for call in source.walk(region):
        if not isinstance(call, ast.Call) or called(call) != "step":
            continue
        if not isinstance(call.func, ast.Attribute):
            continue
        owner = call.func.value
        if re.search("scaler", dotted(owner), re.I) and call.args:
            owner = call.args[0]
        if is_optimizer(source, owner):
            found.append((call, ast.unparse(owner)))
    return found


def around(source: Source, node: ast.AST) -> ast.AST:
    """Return the innermost loop around a node in its function, or the function, or the module."""
    for above in source.above(node):
        if isinstance(above, (*LOOPS, *Function.__args__)):
            return above
    return source.tree


def condition(source: Source, node: ast.AST, region: ast.AST) -> ast.If | None:
    """Return the outermost `if` between a node and the region around it."""
    found = None
    for above in source.above(node):
        if above is region:
            break
        if isinstance(above, ast.If):
            found = above
    return found


def outer_loops(source: Source, node: ast.AST) -> list[ast.AST]:
    """Return the loops around a node, and around the calls of its function, innermost first."""
    loops: list[ast.AST] = []
    seen: set[ast.AST] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop(0)
        loops += [each for each in source.above(part) if isinstance(each, LOOPS)]
        scope = source.scope(part)
        if isinstance(scope, Function) and scope not in seen:
            seen.add(scope)
            waiting += [call for call in source.of(ast.Call) if called(call) == scope.name
                        and scope.name not in _COMMON]  # fmt: skip
    return loops


def blocks(source: Source) -> Iterator[Sequence[ast.stmt]]:
    """Yield each list of statements of a file."""
    for node in source.walk(source.tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def is_without_graph(source: Source, node: ast.AST) -> bool:
    """Whether a node is in a block that records no gradient."""
    return any(
        isinstance(each, ast.With)
        and any(called(item.context_expr) in NO_GRADIENT for item in each.items)
        for each in source.above(node)
    )
