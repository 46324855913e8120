"""Parts of the data under the name of another part, and parts that are split apart."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import is_held_out, is_training
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_MAKERS = re.compile(
    r"^(transform|TensorDataset|DataLoader|from_numpy|tensor|as_tensor|FloatTensor|LongTensor"
    r"|encode|scale|standardi[sz]e|normali[sz]e|preprocess|vectori[sz]e|tokeni[sz]e|to_tensor)$"
)
_FIGURES = re.compile(
    r"loss|acc|score|metric|err|f1|auc|pred|logit|prob|out|len|size|n$|idx|mean", re.I
)
_PARTS = re.compile(r"sampler|subset|split|\[|select|filter|drop|sample\(", re.I)
_JOINED = {"TensorDataset", "DataLoader"}
_ADAPTS = re.compile(r"adapt|meta|maml|attack|advers|tta|test_time|calibrat|arch|alpha", re.I)
_SHORT = re.compile(r"^(y|t|z|f|x|lab|labels?)_?(te|va|ts)$")
_SCORES = re.compile(r"accuracy|^acc$|f1|r2_score|auroc|roc_auc|score$")
_SERIES = re.compile(r"forecast|horizon|time.?series|look_?back|lags?\b|lag_", re.I)
_INPUT = re.compile(r"^(x|xs|features?|inputs?|texts?|images?|data)(_|$)", re.I)
_LABEL = re.compile(r"^(y|ys|labels?|targets?)(_|$)", re.I)


@reads
def held_out_of_training(source: Source) -> Iterator[Pattern]:
    """`x_test = scaler.transform(x_train)`, or `TensorDataset(x_val, y_train)`."""
    for node in source.of(ast.Assign):
        name, call = dotted(node.targets[0]).rpartition(".")[2], node.value
        if not isinstance(call, ast.Call) or not _MAKERS.match(called(call)):
            continue
        if _FIGURES.search(name) or _PARTS.search(ast.unparse(call)):
            continue
        given = [dotted(each).rpartition(".")[2] for each in call.args]
        if called(call) not in _JOINED:
            given = given[:1] if len(call.args) == 1 else []  # others may be statistics
        trained, held = [list(filter(which, given)) for which in (is_training, is_held_out)]
        if is_held_out(name) and trained and not _is_meant(source, node, name):
            yield source.pattern("held-out of training", node, trained[0])
        elif is_training(name) and held and trained:
            yield source.pattern("held-out of training", node, held[0])


@reads
def held_out_by_training_rows(source: Source) -> Iterator[Pattern]:
    """`x_val, y_val = x[train_idx], y[train_idx]`."""
    for scope in source.scopes:
        for name, value, node in source.assigned(scope):
            if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Name):
                continue
            rows, whole = value.slice.id, dotted(value.value)
            if _FIGURES.search(name) or len(source.bindings(scope, name)) > 1:
                continue
            if (is_held_out(name) and is_training(rows) and not is_training(whole)) or (
                is_training(name) and is_held_out(rows) and not is_held_out(whole)
            ):
                yield source.pattern("held-out of training", node, rows)


@reads
def trained_on_held_out(source: Source) -> Iterator[Pattern]:
    """`for x, y in val_loader:` with a backward pass and a step, or a loss of `out[val_mask]`."""
    for loop in source.of(ast.For):
        over = loop.iter
        while isinstance(over, ast.Call) and called(over) in ("enumerate", "tqdm") and over.args:
            over = over.args[0]
        name = dotted(over).rpartition(".")[2]
        if not is_held_out(name) or not re.search(r"loader|_dl$|batches", name):
            continue
        calls = {called(each) for each in source.walk(loop)}
        around = " ".join(
            getattr(each, "name", "") for each in source.above(loop) if hasattr(each, "name")
        )
        if {"backward", "step"} <= calls and not _ADAPTS.search(around + source.code(loop)):
            yield source.pattern("trained on held-out", loop, name)
    for call in source.of(ast.Call):
        if called(call) not in ("cross_entropy", "nll_loss", "mse_loss") or len(call.args) < 2:
            continue
        rows = {dotted(each.slice) for each in call.args[:2] if isinstance(each, ast.Subscript)}
        above = source.parent(call)
        if len(rows) != 1 or not isinstance(above, ast.Assign):
            continue
        row, loss = rows.pop(), dotted(above.targets[0])
        if is_held_out(row) and not is_held_out(loss) and loss:
            block = getattr(source.parent(above), "body", [])
            if any(ast.unparse(each) == f"{loss}.backward()" for each in block):
                yield source.pattern("trained on held-out", call, row)
    yield from _scored_as_trained(source)


def _scored_as_trained(source: Source) -> Iterator[Pattern]:
    """Yield `loss = ce(head(x_test), y_test)` with a step, and a score of the same pair."""
    for call in source.of(ast.Call):
        above = source.parent(call)
        if len(call.args) < 2 or not isinstance(above, ast.Assign):
            continue
        predicted, label = call.args[:2]
        loss = dotted(above.targets[0])
        if not loss or not re.search(r"loss|entropy|crit|mse|bce|ce$", ast.unparse(call.func)):
            continue
        root = label
        while isinstance(root, ast.Subscript | ast.Attribute):
            root = root.value
        names = (dotted(root), dotted(label).rpartition(".")[2])
        held = next((each for each in names if is_held_out(each) or _SHORT.search(each)), "")
        if not held or not isinstance(predicted, ast.Call) or not predicted.args:
            continue
        scope = source.scope(call)
        block = getattr(source.parent(above), "body", [])
        steps = any(ast.unparse(each) == f"{loss}.backward()" for each in block)
        if not steps or _ADAPTS.search(getattr(scope, "name", "")):
            continue
        whole, truth = ast.unparse(predicted), ast.unparse(label)
        for each in source.walk(scope):
            if (
                isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Eq)
            ) or _SCORES.search(called(each)):
                text = ast.unparse(each)
            else:
                continue
            if truth in text and (whole in text or _is_scored(source, scope, each, whole)):
                yield source.pattern("trained on held-out", call, held)
                break


def _is_scored(source: Source, scope: ast.AST, node: ast.AST, whole: str) -> bool:
    """Whether a name in a score was made of the prediction: `pred = head(fte).argmax(1)`."""
    return any(
        whole in ast.unparse(resolved(source, scope, each))
        for each in ast.walk(node)
        if isinstance(each, ast.Name)
    )


def _is_meant(source: Source, node: ast.Assign, name: str) -> bool:
    """Whether the same name gets another value, or parts of the data set are chosen later."""
    scope = source.scope(node)
    if len(source.bindings(scope, name)) > 1:
        return True
    return bool(
        re.search(
            rf"{re.escape(name)}\.(transform|indices|augment|train|is_train)\b",
            source.code(source.tree),
        )
    )


@reads
def unpacked_otherwise(source: Source) -> Iterator[Pattern]:
    """`x_train, y_train, x_test, y_test = train_test_split(x, y)`: its order is another one."""
    for node in source.of(ast.Assign):
        target, call = node.targets[0], node.value
        if called(call) != "train_test_split" or not isinstance(call, ast.Call):
            continue
        if not isinstance(target, ast.Tuple) or len(target.elts) != 4 or len(call.args) != 2:
            continue
        names = [dotted(each) for each in target.elts]
        kinds = [1 if is_training(each) else -1 if is_held_out(each) else 0 for each in names]
        if kinds in ([1, 1, -1, -1], [-1, 1, -1, 1], [-1, -1, 1, 1]):
            yield source.pattern("unpacked otherwise", node, ", ".join(names))


@reads
def split_apart(source: Source) -> Iterator[Pattern]:
    """`train_test_split(x, random_state=0)` and `train_test_split(y, random_state=1)`."""
    found: dict[ast.AST, list[tuple[ast.Assign, ast.Call, list[str]]]] = {}
    for node in source.of(ast.Assign):
        target, call = node.targets[0], node.value
        if (
            called(call) == "train_test_split"
            and isinstance(call, ast.Call)
            and isinstance(target, ast.Tuple)
            and len(target.elts) == 2
            and len(call.args) == 1
        ):
            names = [dotted(each) for each in target.elts]
            found.setdefault(source.scope(node), []).append((node, call, names))
    for every in found.values():
        inputs = [each for each in every if all(map(_INPUT.match, each[2]))]
        labels = [each for each in every if all(map(_LABEL.match, each[2]))]
        for _, one, _ in inputs[:1]:
            for node, other, _ in labels[:1]:
                if _kept(one) != _kept(other) or not _kept(one):
                    yield source.pattern("split apart", node, ast.unparse(other.args[0]))


def _kept(call: ast.Call) -> str:
    """Return what makes two splits draw the same rows: a seed, or no shuffling."""
    for each in call.keywords:
        if each.arg == "random_state" and getattr(each.value, "value", 0) is not None:
            return ast.unparse(each.value)
        if each.arg == "shuffle" and getattr(each.value, "value", None) is False:
            return "in order"
    return ""


@reads
def series_at_random(source: Source) -> Iterator[Pattern]:
    """`train_test_split(x, y)` of rows with lags in a forecast: it shuffles the time."""
    text = source.code(source.tree)
    if not _SERIES.search(text) or not re.search(r"\.shift\(|\.rolling\(|\blag", text):
        return
    if not re.search(r"forecast|time.?series", text, re.I):
        return
    for call in source.of(ast.Call):
        if called(call) != "train_test_split" or source.is_optional(call.lineno):
            continue
        options = {each.arg: each.value for each in call.keywords}
        is_ordered = getattr(options.get("shuffle"), "value", None) is False
        if not is_ordered and "stratify" not in options:
            yield source.pattern("series at random", call, called(call))
