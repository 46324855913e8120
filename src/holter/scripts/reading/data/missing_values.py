"""Missing values that are taken for numbers."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called

_SENTINEL = re.compile(r"^-?9{3,7}(\.0)?$")
_GAPS = re.compile(r"missing|gap|unknown|absent|(^|_)na(n|ns)?($|_)|lost|drop", re.I)
_SEEKING = {"isnan", "nan_to_num", "nanmean", "nanmedian", "fillna", "isna", "isnull", "dropna"}
_LOSSES = {
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "MSELoss",
    "L1Loss",
    "HuberLoss",
    "SmoothL1Loss",
    "cross_entropy",
    "binary_cross_entropy_with_logits",
}


@reads
def kept_sentinels(source: Source) -> Iterator[Pattern]:
    """`x[missing] = -999` in a file that looks for NaN, and never for -999."""
    compared = {_text(side) for node in source.of(ast.Compare)
                for side in (node.left, *node.comparators)}  # fmt: skip
    handled = {_text(each) for call in source.of(ast.Call)
               for each in (*call.args, *(keyword.value for keyword in call.keywords))}  # fmt: skip
    seeks_nan = any(called(call) in _SEEKING for call in source.of(ast.Call))
    for node in source.of(ast.Assign):
        text = _text(node.value)
        if not _SENTINEL.match(text) or not isinstance(node.targets[0], ast.Subscript):
            continue
        index = ast.unparse(node.targets[0].slice)
        is_gap = _GAPS.search(index) or re.search(r"\b(rand|random|uniform)\(", index)
        size = abs(float(text))
        is_sought = any(_magnitude(each) >= 0.5 * size for each in compared)
        is_sought = is_sought or any(_magnitude(each) == size for each in handled)
        if seeks_nan and is_gap and not is_sought:
            yield source.pattern("kept sentinel", node, text)


def _text(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Constant | ast.UnaryOp) else ""


def _magnitude(text: str) -> float:
    try:
        return abs(float(text))
    except ValueError:
        return 0.0


@reads
def gaps_as_targets(source: Source) -> Iterator[Pattern]:
    """`F.mse_loss(pred, torch.nan_to_num(target))`: missing targets are trained to be zero."""
    for call in source.of(ast.Call):
        name = called(call)
        if name not in _LOSSES and not re.search(r"criterion|loss_fn", name):
            continue
        if len(call.args) < 2:
            continue
        is_each = any(
            k.arg == "reduction" and getattr(k.value, "value", "") == "none" for k in call.keywords
        )
        target = resolved(source, source.scope(call), call.args[1])
        masked = re.search(r"mask|known|valid|isnan", ast.unparse(call))
        if called(target) == "nan_to_num" and not is_each and not masked:
            yield source.pattern("gaps as targets", call, ast.unparse(target))
