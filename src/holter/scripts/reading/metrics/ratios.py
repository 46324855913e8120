"""Ratios of counts that are not what their names say."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.metrics.divisions import division, named_values
from holter.scripts.reading.source.expressions import number, resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_TP = re.compile(r"(^|_)(tps?|true_pos(itives?)?|hits?|inter(section)?)(_|$)", re.I)
_FP = re.compile(r"(^|_)(fps?|false_pos(itives?)?)(_|$)", re.I)
_FN = re.compile(r"(^|_)(fns?|false_neg(atives?)?)(_|$)", re.I)
_RESIDUAL = re.compile(r"(^|_)(ss_?res(idual)?|rss|sse|ss_?err|residual)(_|$)", re.I)
_WHOLE = re.compile(r"(^|_)(ss_?tot(al)?|tss|sst)(_|$)", re.I)
_CUT = re.compile(r"^(k|K|top_?k|TOP_?K|at_?k|n_?top|cutoff)$")


@reads
def of_counts(source: Source) -> Iterator[Pattern]:
    """`precision = tp / (tp + fn)`, `recall = tp / (tp + fp)`, `r2 = 1 - ss_tot / ss_res`."""
    for name, value, statement in named_values(source):
        ratio = division(value)
        if ratio is None:
            continue
        words = [dotted(each).rpartition(".")[2] for each in ast.walk(ratio.right)]
        has_fp, has_fn = (any(map(each.search, filter(None, words))) for each in (_FP, _FN))
        is_of_hits = any(_TP.search(dotted(each)) for each in ast.walk(ratio.left) if dotted(each))
        if is_of_hits and re.search(r"(^|_)prec(ision)?s?($|_)", name) and has_fn and not has_fp:
            yield source.pattern("exchanged ratio", statement, "precision, false positives")
        elif is_of_hits and re.search(r"(^|_)rec(all)?s?($|_)", name) and has_fp and not has_fn:
            yield source.pattern("exchanged ratio", statement, "recall, false negatives")
        left = [dotted(each).rpartition(".")[2] for each in ast.walk(ratio.left)]
        if (
            re.search(r"(^|_)r_?2($|_)|r_?squared", name)
            and any(_WHOLE.search(each) for each in left)
            and any(_RESIDUAL.search(each) for each in words)
        ):
            yield source.pattern("exchanged ratio", statement, "R², the total sum of squares")


@reads
def by_cut(source: Source) -> Iterator[Pattern]:
    """`recall = hits / k`: the recall is divided by the number of relevant items."""
    has_cut = re.search(r"topk|top_k|argsort|\[:k|:K\]|@", source.code(source.tree))
    for name, value, statement in named_values(source):
        if not re.match(r"(mean_|avg_|total_)?recalls?(_?at_?(k|\d+)|@k|_k|_\d+)?$", name):
            continue
        ratio = division(value)
        if (
            ratio is not None
            and has_cut
            and _CUT.match(dotted(ratio.right).rpartition(".")[2])
            and not re.search(r"min\(|relevant|len\(", ast.unparse(ratio.left))
        ):
            yield source.pattern("recall by cut", statement, ast.unparse(ratio.right))
    for change in source.of(ast.AugAssign):
        if re.match(r"recalls?$", dotted(change.target).rpartition(".")[2]):
            ratio = division(change.value)
            if ratio is not None and _CUT.match(dotted(ratio.right).rpartition(".")[2]):
                yield source.pattern("recall by cut", change, ast.unparse(ratio.right))


@reads
def means_by_samples(source: Source) -> Iterator[Pattern]:
    """`recall += hit.float().mean().item()` in a loop over batches, and `recall / n_users`."""
    for loop in source.of(ast.For):
        count = _batched_count(source, loop)
        if not count:
            continue
        for change in source.of(ast.AugAssign):
            if source.parent(change) is not loop or not isinstance(change.op, ast.Add):
                continue
            name, text = dotted(change.target), ast.unparse(change.value)
            if not re.search(r"\.mean\(\)(\.item\(\))?\)?$", text):
                continue
            for ratio in source.of(ast.BinOp):
                if (
                    isinstance(ratio.op, ast.Div)
                    and dotted(ratio.left) == name
                    and ratio.lineno > loop.lineno
                    and source.scope(ratio) is source.scope(loop)
                    and ast.unparse(ratio.right) in count
                ):
                    yield source.pattern("means by samples", change, name)
                    break


def _batched_count(source: Source, loop: ast.For) -> set[str]:
    """Return how the file writes the number of rows that a loop takes in batches."""
    over, scope = loop.iter, source.scope(loop)
    if called(over) == "split" and isinstance(over, ast.Call):
        inner = getattr(over.func, "value", over)
        if called(inner) in ("arange", "randperm") and isinstance(inner, ast.Call) and inner.args:
            text = ast.unparse(inner.args[0])
            return {text, ast.unparse(resolved(source, scope, inner.args[0]))}
    if (
        called(over) == "range"
        and isinstance(over, ast.Call)
        and len(over.args) == 3
        and number(source, over.args[2]) != 1
    ):
        stop = over.args[1]
        return {ast.unparse(stop), ast.unparse(resolved(source, scope, stop))}
    return set()
