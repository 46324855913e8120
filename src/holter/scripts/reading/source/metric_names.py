"""Whether a number is better when it is low or high: by its name, or by what computes it."""

import ast
import re
from collections.abc import Sequence

from holter.scripts.reading.source.tree import Function, Source, called, dotted

_LOW = re.compile(
    r"(^|_)(loss|mae|mse|rmse|err|error|nll|ppl|perplexity|cer|wer"
    r"|mape|fid|brier|crps|eer|energy|distance|dist|kl|divergence|anomaly)($|_|\d)",
    re.I,
)
_HIGH = re.compile(
    r"(^|_)(acc|accuracy|f1|auc|auroc|kappa|iou|miou|map|bleu|r2|recall|precision|dice|ndcg)($|_|\d)",
    re.I,
)
# Functions and classes whose results say it, beside those whose names do.
_LOSSES = re.compile(
    r"(^|_)(cross_entropy|mse_loss|l1_loss|nll_loss|huber_loss|smooth_l1_loss|mean_squared_error"
    r"|binary_cross_entropy(_with_logits)?|mean_absolute_error)$"
    r"|^(CrossEntropy|MSE|L1|NLL|Huber|SmoothL1|BCE|BCEWithLogits|GaussianNLL|PoissonNLL)Loss$"
)
_SCORES = re.compile(
    r"^(c_?index|concordance(_index)?|accuracy_score|f1_score|roc_auc_score|r2_score"
    r"|average_precision_score|cohen_kappa_score|balanced_accuracy_score|psnr|mrr|ndcg)$",
    re.I,
)
_SAME = {"item", "float", "mean", "detach", "cpu", "round", "numpy", "sqrt"}


def polarity(source: Source, node: ast.AST, name: str, best: str) -> tuple[bool, bool]:
    """Return whether a value is better low, and whether it is better high."""
    for about in (name, best, f"{name}_{best}"):
        low, high = bool(_LOW.search(about)), bool(_HIGH.search(about))
        if low != high:
            return low, high
        if low and high:
            return True, True
    kinds = _computed(source, source.scope(node), name)
    return kinds == {"low"}, kinds == {"high"}


def _computed(source: Source, scope: ast.AST, name: str) -> set[str]:
    """Return the kinds of everything that a scope assigns to a name."""
    kinds: set[str] = set()
    for assign in source.of(ast.Assign):
        if source.scope(assign) is not scope:
            continue
        for target in assign.targets:
            if dotted(target) == name:
                kinds.add(_kind(source, scope, assign.value, None, 0))
            elif isinstance(target, ast.Tuple):
                places = [n for n, each in enumerate(target.elts) if dotted(each) == name]
                kinds |= {_kind(source, scope, assign.value, place, 0) for place in places}
    return kinds


def _kind(source: Source, scope: ast.AST, value: ast.expr, place: int | None, depth: int) -> str:
    """Return "low", "high" or "" for an expression, or for one part of a tuple."""
    if isinstance(value, ast.Tuple):
        if place is None or place >= len(value.elts):
            return ""
        return _kind(source, scope, value.elts[place], None, depth)
    if depth > 4:
        return ""
    if isinstance(value, ast.Name):
        low, high = bool(_LOW.search(value.id)), bool(_HIGH.search(value.id))
        if low != high:
            return "low" if low else "high"
        made = {_kind(source, scope, each, None, depth + 1) for name, each, _ in
                source.assigned(scope) if name == value.id}  # fmt: skip
        return made.pop() if len(made) == 1 else ""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        return _kind(source, scope, value.left, None, depth + 1)
    if not isinstance(value, ast.Call):
        return ""
    name = called(value)
    if _LOSSES.search(name):
        return "low"
    if _SCORES.match(name):
        return "high"
    if name in _SAME:
        inner = value.args[0] if value.args else None
        if isinstance(value.func, ast.Attribute) and not inner:
            inner = value.func.value
        return _kind(source, scope, inner, place, depth + 1) if inner is not None else ""
    if _is_criterion(source, value):
        return "low"
    return _returned(source, name, place, depth)


def _is_criterion(source: Source, call: ast.Call) -> bool:
    """Whether a call is of an object of a loss class: `criterion = nn.MSELoss()`."""
    values = makers(source, call)
    return bool(values) and all(_LOSSES.search(called(each)) for each in values)


def makers(source: Source, call: ast.Call) -> Sequence[ast.expr]:
    """Return all that the file assigns to what is called: `nn.MSELoss()` for `criterion(p, y)`."""
    return source.named(dotted(call.func).rpartition(".")[2])


def _returned(source: Source, name: str, place: int | None, depth: int) -> str:
    """Return the kind of what a function of the file returns."""
    functions = [each for each in source.of(*Function.__args__) if each.name == name]
    if len(functions) != 1:
        return ""
    (function,) = functions
    returns = [each.value for each in source.walk(function) if isinstance(each, ast.Return)
               and each.value is not None and source.scope(each) is function]  # fmt: skip
    kinds = {_kind(source, function, each, place, depth + 1) for each in returns}
    return kinds.pop() if len(kinds) == 1 else ""
