"""What is computed of all rows, or copied among them, before they are split."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import is_held_out, is_training
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_FITTED = re.compile(
    r"Scaler$|Imputer$|^(Incremental|Kernel|Sparse)?PCA$|SVD$|Vectorizer$|Transformer$|^NMF$|^FastICA$"
    r"|Standardi[sz]er$|Discretizer$|^VarianceThreshold$|^(Robust|Min|Max)\w*Scal",
)
_SUPERVISED = re.compile(
    r"^(SelectKBest|SelectPercentile|SelectFromModel|SelectFpr|RFE|RFECV|TargetEncoder"
    r"|LinearDiscriminantAnalysis|LDA|PLSRegression|NeighborhoodComponentsAnalysis)$"
)
_PIPELINES = {"make_pipeline", "Pipeline", "ColumnTransformer", "make_column_transformer"}
_STATISTICS = {
    "mean",
    "std",
    "var",
    "min",
    "max",
    "median",
    "nanmean",
    "nanstd",
    "quantile",
    "percentile",
    "nanmedian",
    "amin",
    "amax",
    "var_mean",
    "std_mean",
}
_JOINS = {"concatenate", "concat", "vstack", "cat", "append", "hstack", "chain", "row_stack"}
_SPLITS = {"train_test_split", "random_split"}
_TRAIN = re.compile(r"(^|_)(train|training|tr|trn|fit)(_|$|\d)", re.I)
_HELD_OUT = re.compile(
    r"(^|_)(val|va|vl|valid|validation|test|te|ts|tst|dev|holdout|held_out|eval)(_|$|\d)", re.I
)
_NO_ROWS = re.compile(r"adj|edge_index|edges|transductive|propagat|GCN|graph", re.I)
_RESAMPLES = {"fit_resample", "fit_sample"}
_RESAMPLERS = re.compile(r"smote|oversampl|adasyn|sampler|ros$", re.I)


@reads
def fitted_on_all(source: Source) -> Iterator[Pattern]:
    """`scaler.fit_transform(x)` before `train_test_split(x)`, or a mean over train and test."""
    for call in source.of(ast.Call):
        if (
            called(call) in ("fit", "fit_transform")
            and isinstance(call.func, ast.Attribute)
            and call.args
        ):
            yield from _of_fit(source, call, call.func.value)
    yield from _of_statistics(source)


_VOCABULARY = re.compile(
    r"(^|_)(build|make|create|get|fit|learn|train)\w*_(vocab\w*|tokeni[sz]er|dictionary|bpe)"
    r"(_from_iterator)?$|^vocab\w*$|^fit_on_texts$|^train_from_iterator$", re.I
)  # fmt: skip


@reads
def vocabulary_of_all(source: Source) -> Iterator[Pattern]:
    """`build_vocab(train + test)`: words are chosen, and known, that only the test data have."""
    for call in source.of(ast.Call):
        if not _VOCABULARY.search(called(call)) or not call.args:
            continue
        if _joins_both(source, source.scope(call), call.args[0]):
            yield source.pattern("vocabulary of all", call, ast.unparse(call.args[0])[:40])


def _of_fit(source: Source, call: ast.Call, owner: ast.expr) -> Iterator[Pattern]:
    scope = source.scope(call)
    made = resolved(source, scope, owner)
    names = {called(made)}
    if called(made) in _PIPELINES:
        names = {called(each) for each in ast.walk(made)}
    is_supervised = len(call.args) > 1 and any(_SUPERVISED.match(each) for each in names)
    if not is_supervised and not any(_FITTED.search(each) for each in names):
        return
    given = call.args[0]
    if _joins_both(source, scope, given):
        yield source.pattern("fitted on held-out", call, ast.unparse(given)[:40])
        return
    whole = _whole(given)
    results = {_target(source, call), whole} - {""}
    results |= {
        name
        for name, value, _ in source.assigned(scope)
        if called(value) == "transform"
        and isinstance(value, ast.Call)
        and value.args
        and _whole(value.args[0]) == whole
    }
    is_split = _is_split(source, scope, results, call.lineno)
    if whole and (is_split or (is_supervised and _has_parts(source, scope))):
        kind = "selected on all" if is_supervised else "scaled on all"
        yield source.pattern(kind, call, whole)


def _has_parts(source: Source, scope: ast.AST) -> bool:
    """Whether a scope has the rows of several parts: `tr, va, te = np.split(...)`."""
    names = [
        each.id
        for node in source.of(ast.Assign)
        if source.scope(node) is scope
        for target in node.targets
        for each in ast.walk(target)
        if isinstance(each, ast.Name)
    ]
    return any(map(is_training, names)) and any(_HELD_OUT.search(each) for each in names)


def _of_statistics(source: Source) -> Iterator[Pattern]:
    """Yield means and deviations of all rows that the rows are scaled with."""
    for scope in source.scopes:
        for name, given, statement in source.assigned(scope):
            value = given
            while isinstance(value, ast.BinOp) and isinstance(value.right, ast.Constant):
                value = value.left
            if called(value) not in _STATISTICS or not isinstance(value, ast.Call):
                continue
            of = tensor_of(value)
            if of is None or not _is_scale(source, name):
                continue
            if _joins_both(source, scope, of):
                yield source.pattern("fitted on held-out", statement, ast.unparse(of)[:40])
                continue
            whole = _whole(of)
            scaled = {
                other for other, made, _ in source.assigned(scope) if _is_scaled(made, whole, name)
            }
            if whole and scaled and _is_split(source, scope, scaled, statement.lineno):
                yield source.pattern("scaled on all", statement, whole)


def _is_scale(source: Source, name: str) -> bool:
    """Whether a statistic is subtracted or divided by, which a baseline is not alone."""
    return any(
        isinstance(node.op, ast.Div) and name in {dotted(each) for each in ast.walk(node)}
        for node in source.of(ast.BinOp)
    )


def _is_scaled(value: ast.expr, whole: str, name: str) -> bool:
    """Whether a value is `(x - mu) / sd` of the whole."""
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Div)
        and ({whole, name} <= {dotted(each) for each in ast.walk(value)})
    )


def _whole(node: ast.expr) -> str:
    """Return the name of a table that is given whole, or some of its columns."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        if isinstance(node, ast.Subscript):
            is_columns = (
                isinstance(node.slice, ast.List)
                or (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str))
                or (
                    isinstance(node.slice, ast.Name)
                    and re.search(r"cols?|feat|COLS|FEAT|num", node.slice.id)
                )
            )
            if not is_columns:
                return ""
            node = node.value
        elif isinstance(node, ast.Attribute):
            if node.attr != "values":
                return ""
            node = node.value
        elif called(node) in ("to_numpy", "astype", "float", "numpy", "reshape") and isinstance(
            node.func, ast.Attribute
        ):
            node = node.func.value
        else:
            return ""
    name = node.id if isinstance(node, ast.Name) else ""
    return "" if _TRAIN.search(name) or _HELD_OUT.search(name) else name


def _target(source: Source, call: ast.Call) -> str:
    for node in source.above(call):
        if isinstance(node, ast.Assign):
            return (
                _whole(node.targets[0])
                if isinstance(node.targets[0], ast.Name | ast.Subscript)
                else ""
            )
        if isinstance(node, ast.stmt):
            return ""
    return ""


def _joins_both(source: Source, scope: ast.AST, node: ast.expr) -> bool:
    """Whether a table is joined of training data and held-out data."""
    joined = resolved(source, scope, node)
    is_sum = isinstance(joined, ast.BinOp) and isinstance(joined.op, ast.Add)
    if (called(joined) not in _JOINS and not is_sum) or _NO_ROWS.search(source.code(source.tree)):
        return False
    names = {each.id for each in ast.walk(joined) if isinstance(each, ast.Name)}
    return any(_TRAIN.search(each) and not _HELD_OUT.search(each) for each in names) and any(
        is_held_out(each) or _HELD_OUT.search(each) for each in names
    )


def _is_split(source: Source, scope: ast.AST, names: set[str], line: int) -> bool:
    """Whether a table is split after a line, by a function or by indices of both parts."""
    if _NO_ROWS.search(source.code(source.tree)):
        return False
    trained = held = False
    for node in source.of(ast.Call):
        if (
            called(node) in _SPLITS
            and source.scope(node) is scope
            and node.lineno > line
            and any(dotted(each) in names for given in node.args for each in ast.walk(given))
        ):
            return True
    for part in source.of(ast.Subscript):
        if source.scope(part) is not scope or part.lineno <= line:
            continue
        if dotted(part.value) not in names or not isinstance(part.ctx, ast.Load):
            continue
        words = [dotted(each).rpartition(".")[2] for each in ast.walk(part.slice)]
        trained |= any(_TRAIN.search(word) for word in words)
        held |= any(_HELD_OUT.search(word) for word in words)
        above = source.parent(part)
        if isinstance(part.slice, ast.Slice) and isinstance(above, ast.Assign | ast.Tuple):
            target = _name_of_part(source, part)
            trained |= is_training(target)
            held |= is_held_out(target)
    return trained and held


def _name_of_part(source: Source, part: ast.expr) -> str:
    """Return the name that a slice is given: `x_train, x_test = x[:n], x[n:]`."""
    above = source.parent(part)
    if isinstance(above, ast.Assign):
        return dotted(above.targets[0])
    assign = source.parent(above) if above is not None else None
    if isinstance(assign, ast.Assign) and isinstance(above, ast.Tuple):
        target = assign.targets[0]
        place = above.elts.index(part)
        if isinstance(target, ast.Tuple) and place < len(target.elts):
            return dotted(target.elts[place])
    return ""


@reads
def copied_before_split(source: Source) -> Iterator[Pattern]:
    """`df = pd.concat([df, df[df.y == 1]])` and then `train_test_split(df)`."""
    for node in source.of(ast.Assign):
        scope = source.scope(node)
        targets = node.targets[0]
        first = targets.elts[0] if isinstance(targets, ast.Tuple) and targets.elts else targets
        name = dotted(first)
        if not name or _TRAIN.search(name) or _HELD_OUT.search(name):
            continue
        if not (_copies(source, scope, node.value, name) or _resamples(source, node.value)):
            continue
        if _is_split(source, scope, {name}, node.lineno) and _is_random(source, scope, name):
            yield source.pattern("copied before split", node, name)


def _resamples(source: Source, value: ast.expr) -> bool:
    if called(value) not in _RESAMPLES or not isinstance(value, ast.Call):
        return False
    owner = getattr(value.func, "value", value)
    text = ast.unparse(owner) + ast.unparse(resolved(source, source.scope(value), owner))
    given = " ".join(ast.unparse(each) for each in value.args)
    return bool(_RESAMPLERS.search(text)) and not re.search(
        r"train|_tr\b|under", given + text, re.I
    )


def _copies(source: Source, scope: ast.AST, value: ast.expr, name: str) -> bool:
    """Whether rows of a table are joined to the table itself, as they are or changed."""
    if called(value) in _JOINS and isinstance(value, ast.Call):
        parts = [part for each in value.args for part in _parts(each)]
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        parts = _parts(value)
        if not any(isinstance(each, ast.ListComp) for each in parts):
            return False
    else:
        return False
    if not any(dotted(each) == name for each in parts):
        return False
    return (
        any(dotted(each) != name and _is_made_of(source, scope, each, name) for each in parts)
        or sum(dotted(each) == name for each in parts) > 1
    )


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return what a sum or a list joins: `[a] + [b] * 9` is `a` and `b`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_parts(node.left), *_parts(node.right)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _parts(node.left)
    if isinstance(node, ast.List | ast.Tuple):
        return [part for each in node.elts for part in _parts(each)]
    return [node]


def _is_made_of(source: Source, scope: ast.AST, node: ast.expr, name: str) -> bool:
    """Whether an expression is made of rows of a table, not only of its size."""
    node = resolved(source, scope, node)
    if isinstance(node, ast.Call) and called(node) in ("sample", "copy", "repeat"):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node
        rows = resolved(source, scope, owner)  # `bad.sample(n)` of `bad = df[df.y == 1]`
        if isinstance(rows, ast.Subscript) and dotted(rows.value) == name:
            return True
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id == name:
            above = source.parent(each)
            is_size = (
                isinstance(above, ast.Attribute) and above.attr in ("shape", "size", "dtype")
            ) or called(above or node) == "len"
            if not is_size:
                return True
    return False


def _is_random(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether a split mixes the rows: rows in the order of time stay beside their copies."""
    text = source.code(scope) if isinstance(scope, Function) else source.code(source.tree)
    return (
        bool(re.search(r"shuffle|permut|train_test_split|random_split|randperm|\.sample\(", text))
        and "unique(" not in text.split(name)[-1]
    )
