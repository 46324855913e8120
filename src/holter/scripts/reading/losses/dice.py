"""Overlap losses: scores that are minimised, logits in place of probabilities, ignored pixels."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_OVERLAP_SCORE = re.compile(r"dice|iou|jaccard|tversky|ssim", re.I)
_LOSSES = re.compile(r"cross_entropy|bce|nll|mse|loss|focal|ce$", re.I)
_OVERLAP = re.compile(r"dice|iou|jaccard|tversky", re.I)
_SQUASHING = {"sigmoid", "softmax", "Sigmoid", "Softmax", "exp", "log_softmax", "logsigmoid"}
_FROM_LOGITS = {
    "cross_entropy",
    "binary_cross_entropy_with_logits",
    "CrossEntropyLoss",
    "BCEWithLogitsLoss",
    "sigmoid_focal_loss",
}


@reads
def minimised_overlap(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(x, y) + dice(x, y)` of a function that returns a score, not `1 - score`."""
    scores = {function.name for function in source.of(ast.FunctionDef)
              if _OVERLAP_SCORE.search(function.name) and _returns_score(function)}  # fmt: skip
    sums: list[ast.BinOp | ast.AugAssign] = [*source.of(ast.BinOp), *source.of(ast.AugAssign)]
    for node in sums:
        if not isinstance(node.op, ast.Add):
            continue
        sides = (
            (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        )
        for side, other in (sides, sides[::-1]):
            factors = [side]
            if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult):
                factors = [side.left, side.right]
            if any(isinstance(each, ast.UnaryOp) for each in factors):
                continue
            name = next((called(each) for each in factors if called(each) in scores), "")
            if name and _LOSSES.search(_head(source, other)):
                yield source.pattern("minimised overlap", node, name)


def _head(source: Source, node: ast.expr) -> str:
    """Return what an expression calls, or the name that it is."""
    while isinstance(node, ast.BinOp):
        node = node.left if not isinstance(node.left, ast.Constant) else node.right
    value = resolved(source, source.scope(node), node)
    return f"{dotted(node)} {called(value)}"


def _returns_score(function: ast.FunctionDef) -> bool:
    """Whether a function divides an overlap by a size, and nowhere subtracts from 1 or negates."""
    divides = False
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp):
            divides = divides or isinstance(node.op, ast.Div)
            if isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
                return False
        is_minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        if is_minus and not isinstance(getattr(node, "operand", None), ast.Constant):
            return False
        if called(node) in ("log", "neg", "sub", "rsub"):
            return False
    return divides


@reads
def overlap_of_logits(source: Source) -> Iterator[Pattern]:
    """`dice_loss(logits, mask)` that multiplies logits, which cross entropy is given as well."""
    for function in source.of(ast.FunctionDef):
        if not _OVERLAP.search(function.name) or not function.args.args:
            continue
        first = function.args.args[0].arg
        if first == "self" or any(
            called(each) in _SQUASHING or called(each) in ("argmax", "round")
            for each in source.walk(function)
        ):
            continue
        if any(
            isinstance(each, ast.Compare)
            and first in {dotted(part) for part in ast.walk(each.left)}
            for each in source.walk(function)
        ):
            continue
        if not _is_multiplied(source, function, first):
            continue
        for call in source.of(ast.Call):
            if called(call) != function.name or not call.args:
                continue
            given = dotted(call.args[0])
            if given and _goes_to_entropy(source, source.scope(call), given):
                yield source.pattern("overlap of logits", call, given)
                break


def _is_multiplied(source: Source, function: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(node.op, ast.Mult) and name in {dotted(node.left), dotted(node.right)}
        for node in source.of(ast.BinOp)
        if source.scope(node) is function
    )


def _goes_to_entropy(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether the same tensor is given to a loss that expects logits."""
    for call in source.of(ast.Call):
        if source.scope(call) is not scope or not call.args or dotted(call.args[0]) != name:
            continue
        if called(call) in _FROM_LOGITS:
            return True
        made = source.named(called(call))
        if made and all(called(each) in _FROM_LOGITS for each in made):
            return True
    return False


@reads
def counted_ignored(source: Source) -> Iterator[Pattern]:
    """A Dice term over every pixel, beside `cross_entropy(..., ignore_index=255)`."""
    ignored: set[str] = set()
    for call in source.of(ast.Call):
        if called(call) in ("cross_entropy", "CrossEntropyLoss"):
            ignored |= {ast.unparse(each.value) for each in call.keywords
                        if each.arg == "ignore_index"}  # fmt: skip
    if len(ignored) != 1:
        return
    mark = ignored.pop()
    for function in source.of(ast.FunctionDef):
        text = source.code(function)
        if not _OVERLAP.search(function.name) or re.search(r"valid|mask|ignore|keep", text, re.I):
            continue
        is_soft = re.search(r"softmax\(|sigmoid\(", text) and re.search(r"sum\(", text)
        used = [call for call in source.of(ast.Call) if called(call) == function.name]
        summed = [call for call in used if any(
            isinstance(above, ast.BinOp) and "cross_entropy" in ast.unparse(above)
            for above in source.above(call))]  # fmt: skip
        if is_soft and mark not in text and summed and "[" not in ast.unparse(summed[0]):
            yield source.pattern("ignored in overlap", function, mark)
