"""Figures and data sets that are named as held-out, and are those of the training."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import TRAINING, is_held_out, is_training
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

# Parts of an argument that may be held-out data under another name.
_OTHER = re.compile(
    r"(^|_|\b)(val\w*|test\w*|te|ts|va|vl|ev|eval\w*|query|dev|ood|held\w*)(_|$|\b|\d)"
)
_SERVED = re.compile(r"loader|_dl$|dataset|_set$|_data$|_ds$|_rows$|^train$|batches|iter", re.I)
_FIGURES = re.compile(r"loss|acc|eval|valid|score|metric|rmse|mae|auc|f1|test|perplex|error", re.I)
_FITTING = re.compile(r"train|fit|fold|cross|cv|knn|probe|split", re.I)
_LABEL = re.compile(
    r"(^|[\s|,;(])(val|valid|validation|held-out|dev)\.?[ _:=][\w@ -]*[ :=]*$", re.I
)
_BOTH = re.compile(r"train|(^|\W)tr(\W|$)", re.I)
_AUGMENTED = {"augment", "augmentation", "use_augmentation", "is_train", "training", "train"}


@reads
def of_training(source: Source) -> Iterator[Pattern]:
    """`val_loss = evaluate(model, train_loader)`, and the same under a key or in a print."""
    for node in source.of(ast.Assign):
        target = node.targets[0]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [dotted(each).rpartition(".")[2] for each in parts]
        is_figure = all(is_held_out(each) for each in names) and not _SERVED.search(names[0])
        if is_figure and _is_of_training(node.value):
            yield source.pattern("evaluated on training", node, names[0])
    for table in source.of(ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            name = str(key.value) if isinstance(key, ast.Constant) else ""
            if is_held_out(name.replace("/", "_")) and _is_of_training(value):
                yield source.pattern("evaluated on training", value, name)
    for text in source.of(ast.JoinedStr):
        yield from _in_text(source, text, text.values)
    for call in source.of(ast.Call):
        if called(call) == "print":
            yield from _in_text(source, call, call.args)


def _is_of_training(value: ast.expr) -> bool:
    """Whether a call computes figures of a model on training data alone."""
    name = called(value)
    if not isinstance(value, ast.Call) or not _FIGURES.search(name) or _FITTING.search(name):
        return False
    given = [*value.args, *(each.value for each in value.keywords)]
    names = [dotted(each).rpartition(".")[2] for each in given]
    is_given = any(TRAINING.search(each) and _SERVED.search(each) for each in names)
    return is_given and not any(_OTHER.search(ast.unparse(each)) for each in given)


def _in_text(source: Source, text: ast.expr, parts: list[ast.expr]) -> Iterator[Pattern]:
    """Yield values that a text calls validation, and that are computed on training data."""
    before = ""
    for part in parts:
        if isinstance(part, ast.Constant):
            before = str(part.value)
            continue
        words = _LABEL.search(before)
        value = part.value if isinstance(part, ast.FormattedValue) else part
        if words and not _BOTH.search(before[words.start() :]):
            statement = _last_value(source, text, value)
            if _is_of_training(statement.value if isinstance(statement, ast.Assign) else value):
                yield source.pattern("evaluated on training", statement or value, words.group(2))
        before = ""  # of two figures, `val {a} / {b}`, the second one has no name of its own


def _last_value(source: Source, text: ast.AST, name: ast.expr) -> ast.Assign | None:
    """Return the only statement of the loop around a print that gives a name its value."""
    statement = next((each for each in source.above(text) if isinstance(each, ast.stmt)), text)
    block = source.parent(statement)
    if not isinstance(block, ast.For | ast.While) or not isinstance(name, ast.Name):
        return None
    if is_held_out(name.id):
        return None  # its statement is found without the text
    made = [
        node
        for node in source.of(ast.Assign)
        if block in source.above(node)
        and any(dotted(each) == name.id for target in node.targets for each in source.walk(target))
    ]
    return made[0] if len(made) == 1 and source.parent(made[0]) is block else None


@reads
def made_for_training(source: Source) -> Iterator[Pattern]:
    """`val_set = Images(x_val, augment=True)` beside a training set with the same arguments."""
    for scope in source.scopes:
        every = [
            (name, value, statement, flags)
            for name, value, statement in source.assigned(scope)
            if isinstance(value, ast.Call) and (flags := _flags(value))
        ]
        training = {
            (called(value), flag)
            for name, value, _, flags in every
            if is_training(name)
            for flag in flags
        }
        for name, value, statement, flags in every:
            both = [flag for flag in flags if (called(value), flag) in training]
            if both and is_held_out(name) and _is_used_whole(source, name):
                yield source.pattern("held-out as training", statement, f"{both[0]}=True")


def _flags(call: ast.Call) -> list[str]:
    return [
        each.arg
        for each in call.keywords
        if each.arg in _AUGMENTED
        and isinstance(each.value, ast.Constant)
        and each.value.value is True
    ]


def _is_used_whole(source: Source, name: str) -> bool:
    """Whether all uses of a data set are loaders without a sampler, evaluations, or its length.

    Parts of the training data, by index or by a sampler, are held-out data as well.
    """
    uses = [source.parent(node) for node in source.of(ast.Name)
            if node.id == name and isinstance(node.ctx, ast.Load)]  # fmt: skip
    return bool(uses) and all(
        isinstance(use, ast.Call)
        and not any(each.arg and "sampler" in each.arg for each in use.keywords)
        and (called(use) == "len" or re.search("loader|eval|valid", called(use), re.I))
        for use in uses
    )
