"""Scores of anomalies: thresholds that the test data set, and means over the wrong axis."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import argument, made_once, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import VALIDATION
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_THRESHOLD = re.compile(r"thr(esh(old)?)?s?$|^thr|cut_?off|alarm|limit|^tau$", re.I)
_TEST = re.compile(r"(^|_)(test|tst)(_|$|\d)|(^|_)te(_|$)", re.I)
_CHOOSING = re.compile(r"^(median|mean|max)$|^(best|find|tune|pick|choose)_threshold$")
_QUANTILES = {"quantile", "percentile", "nanquantile", "nanpercentile", "kthvalue"}
_SCORE = re.compile(r"score|err(or)?s?(_|$)|anomal|recon(struction)?_?(loss|err)", re.I)
_RANKED = {"roc_auc_score", "average_precision_score", "roc_curve", "precision_recall_curve"}
_TENSOR = re.compile(r"\*\* 2|pow\(2\)|abs\(|square|reduction='none'")


@reads
def threshold_of_test(source: Source) -> Iterator[Pattern]:
    """`threshold = np.quantile(test_scores, 0.99)`: the data that it is tested on sets it."""
    has_validation = any(VALIDATION.search(each.id) for each in source.of(ast.Name))
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            if not _THRESHOLD.search(name) or _TEST.search(name):
                continue
            # Validation scores that are there show that others were to be used.
            is_chosen = has_validation and bool(_CHOOSING.search(called(value)))
            given = value if is_chosen else _summarised(value)
            if given is None or not (has_validation or _is_compared(source, scope, name)):
                continue
            names = {dotted(node).rpartition(".")[2] for node in source.walk(given)
                     if isinstance(node, ast.Name | ast.Attribute)}  # fmt: skip
            if any(map(_TEST.search, names)) and not any(map(VALIDATION.search, names)):
                yield source.pattern("threshold of test", statement, ast.unparse(given))


def _summarised(value: ast.expr) -> ast.expr | None:
    """Return the scores of `quantile(scores, q)`, or of `scores.mean() + 3 * scores.std()`."""
    while isinstance(value, ast.Call) and called(value) in ("item", "float"):
        value = value.args[0] if value.args else getattr(value.func, "value", value.func)
    if isinstance(value, ast.Call) and called(value) in _QUANTILES:
        is_method = isinstance(value.func, ast.Attribute) and dotted(value.func.value) not in (
            *("np", "numpy", "torch"),
        )
        return value.func.value if is_method else next(iter(value.args), None)  # type: ignore[attr-defined]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        parts = [each for each in ast.walk(value) if called(each) in ("mean", "std", "median")]
        if {called(each) for each in parts} >= {"std"} and len(parts) == 2:
            return value
    return None


def _is_compared(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether scores of the test data are above or below a threshold."""
    return any(
        isinstance(node, ast.Compare)
        and name in {dotted(node.left), *map(dotted, node.comparators)}
        and any(_TEST.search(dotted(each).rpartition(".")[2])
                for each in (node.left, *node.comparators))
        for node in source.walk(scope)
    )  # fmt: skip


@reads
def score_of_features(source: Source) -> Iterator[Pattern]:
    """`((model(x) - x) ** 2).mean(dim=0)` as the scores of samples."""
    for function in source.of(ast.FunctionDef):
        if not _SCORE.search(function.name) or not _is_ranked(source, function):
            continue
        for node in source.walk(function):
            if not isinstance(node, ast.Return) or node.value is None:
                continue
            for call in source.walk(node.value):
                if isinstance(call, ast.Call) and called(call) in ("mean", "sum"):
                    dims = argument(call, 0, "dim", "axis")
                    if whole(dims) == 0 and _TENSOR.search(ast.unparse(call)):
                        yield source.pattern("score of features", call, function.name)


def _is_ranked(source: Source, function: Function) -> bool:
    """Whether what a function returns is compared with a threshold, or ranked beside labels."""
    for call in source.of(ast.Call):
        if called(call) != function.name:
            continue
        statement = next(each for each in source.above(call) if isinstance(each, ast.stmt))
        name = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        scope = source.scope(call)
        for node in source.walk(scope):
            is_direct = call in source.walk(node) or (
                bool(name) and made_once(source, scope, name) is not None
            )
            given: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                given = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and called(node) in _RANKED:
                given = list(node.args)
            if is_direct and any(each is call or (name and dotted(each) == name) for each in given):
                return True
    return False
