"""Connectionist temporal classification: what the loss is given, and how outputs are read."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_BLANK = re.compile(r"blank", re.I)
_MERGING = {"unique_consecutive", "groupby"}
_LOSSES = {"CTCLoss", "ctc_loss"}
_LOGARITHMS = re.compile(
    r"log_?softmax|LogSoftmax|\.log\(|log_probs_?\(|logsigmoid|logsumexp", re.I
)
_MOVED = re.compile(r"(label|target|tgt|transcript|\by|\bt|ids?|seq)\w*(\[[^\]]*\])? \+ 1\b")
_BLANKS = "-_ε~#*<"


@reads
def merged_late(source: Source) -> Iterator[Pattern]:
    """`ids = ids[ids != BLANK]` and then `unique_consecutive(ids)`: doubled symbols are lost."""
    for function in source.of(*Function.__args__):
        filtered: dict[str, int] = {}
        for statement in source.walk(function):
            if isinstance(statement, ast.Assign) and _is_filter(statement.value):
                for target in statement.targets:
                    filtered.setdefault(dotted(target), statement.lineno)
        for call in source.walk(function):
            if not isinstance(call, ast.Call) or called(call) not in _MERGING:
                continue
            given = call.args[0] if call.args else None
            if isinstance(call.func, ast.Attribute) and given is None:
                given = call.func.value
            if given is None:
                continue
            name = dotted(given)
            is_late = bool(name) and 0 < filtered.get(name, 0) < call.lineno
            if is_late and _is_new(source, function, name, filtered[name], call):
                yield source.pattern("late merge", call, name)
            elif _is_filter(given):
                yield source.pattern("late merge", call, ast.unparse(given))


def _is_filter(value: ast.expr) -> bool:
    """Whether an expression is something without its blanks."""
    if isinstance(value, ast.Subscript):
        return _is_not_blank(value.slice)
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return len(value.generators) == 1 and any(
            _is_not_blank(test) for test in value.generators[0].ifs
        ) and not any(called(each) in _MERGING for each in ast.walk(value))  # fmt: skip
    return False


def _is_not_blank(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.NotEq)
        and any(_BLANK.search(dotted(each)) for each in (test.left, *test.comparators))
    )


def _is_new(source: Source, function: ast.AST, name: str, since: int, call: ast.Call) -> bool:
    """Whether nothing else was given the name between its filter and a call."""
    between = [
        statement
        for other, value, statement in source.assigned(function)
        if other == name and since < statement.lineno < call.lineno and not _is_filter(value)
    ]
    before = [
        statement
        for other, value, statement in source.assigned(function)
        if other == name
        and statement.lineno < since
        and any(called(each) in _MERGING for each in source.walk(value))
    ]
    return not between and not before


def _uses_ctc(source: Source) -> bool:
    return any(called(call) in _LOSSES for call in source.of(ast.Call))


@reads
def unlogged(source: Source) -> Iterator[Pattern]:
    """`CTCLoss` in a file that takes no logarithm: it is given probabilities, or logits."""
    calls = [call for call in source.of(ast.Call) if called(call) in _LOSSES]
    if not calls or _LOGARITHMS.search(source.code(source.tree)):
        return
    if not source.module_classes or not source.is_script:
        return  # the model of another file
    softmax = [call for call in source.of(ast.Call) if called(call) in ("softmax", "Softmax")]
    at = softmax[-1] if softmax else calls[0]
    yield source.pattern("CTC without logarithm", at, called(at))


@reads
def unlogged_likelihood(source: Source) -> Iterator[Pattern]:
    """`NLLLoss` in a file that takes no logarithm."""
    calls = [call for call in source.of(ast.Call) if called(call) in ("NLLLoss", "nll_loss")]
    is_whole = bool(source.module_classes) and source.is_script
    if (
        calls
        and is_whole
        and not re.search(
            _LOGARITHMS.pattern + r"|torch\.log\b|Adaptive|\blog\(", source.code(source.tree), re.I
        )
    ):
        yield source.pattern("likelihood without logarithm", calls[0], called(calls[0]))


@reads
def late_previous(source: Source) -> Iterator[Pattern]:
    """`if s != previous and s != BLANK: out.append(s); previous = s`: blanks part no repeats."""
    for loop in source.of(ast.For):
        turns = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        for compare in (node for part in loop.body for node in source.walk(part)):
            pair = _compared(compare, ast.NotEq) or _compared(compare, ast.Eq)
            if pair is None or not turns & {*pair}:
                continue
            symbol, previous = pair if pair[0] in turns else pair[::-1]
            if previous in turns or _BLANK.search(previous) or not previous.isidentifier():
                continue
            kept = [node for part in loop.body for node in source.walk(part)
                    if isinstance(node, ast.Assign) and dotted(node.targets[0]) == previous
                    and dotted(node.value) == symbol]  # fmt: skip
            if len(kept) == 1 and _is_skipped(source, loop, kept[0], symbol):
                yield source.pattern("late merge", kept[0], previous)


def _compared(node: ast.AST, kind: type[ast.cmpop]) -> tuple[str, str] | None:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    if not isinstance(node.ops[0], kind):
        return None
    sides = dotted(node.left), dotted(node.comparators[0])
    return sides if all(sides) else None


def _is_skipped(source: Source, loop: ast.For, kept: ast.stmt, symbol: str) -> bool:
    """Whether a statement is left out when a symbol is the blank."""
    tests = [each.test for each in source.above(kept) if isinstance(each, ast.If)
             and loop in source.above(each)
             and not any(kept in source.walk(part) for part in each.orelse)]  # fmt: skip
    if any(_is_no_blank(source, node, symbol) for test in tests for node in ast.walk(test)):
        return not any(isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
                       for test in tests for node in ast.walk(test))  # fmt: skip
    for before in loop.body:  # `if s == BLANK: continue`
        if before is kept or before.lineno >= kept.lineno:
            break
        if (
            isinstance(before, ast.If)
            and isinstance(before.body[-1], ast.Continue)
            and any(_is_blank(node, symbol) for node in ast.walk(before.test))
            and not any(
                isinstance(node, ast.Assign) and dotted(node.targets[0]) == dotted(kept.targets[0])  # type: ignore[attr-defined]
                for part in before.body for node in ast.walk(part)
            )
        ):  # fmt: skip
            return True
    return False


def _is_no_blank(source: Source, node: ast.AST, symbol: str) -> bool:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.NotEq):
        return False
    return _names_blank(source, node, symbol)


def _is_blank(node: ast.AST, symbol: str) -> bool:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
        return False
    sides = (node.left, *node.comparators)
    return any(dotted(each) == symbol for each in sides) and any(
        _BLANK.search(dotted(each)) for each in sides
    )


def _names_blank(source: Source, node: ast.Compare, symbol: str) -> bool:
    sides = (node.left, *node.comparators)
    is_blank = any(_BLANK.search(dotted(each)) or (whole(each) == 0 and _uses_ctc(source))
                   for each in sides)  # fmt: skip
    return is_blank and any(dotted(each) == symbol for each in sides)


@reads
def padded_lengths(source: Source) -> Iterator[Pattern]:
    """`torch.full_like(x_len, h.size(1))`: every sequence is as long as the longest one."""
    if not _uses_ctc(source):
        return
    for call in source.of(ast.Call):
        if called(call) == "full_like" and len(call.args) > 1:
            lengths, size = dotted(call.args[0]), ast.unparse(call.args[1])
            is_length = re.search(r"len|sizes?$|frames", lengths, re.I)
            if is_length and re.search(r"\.(size\(\d\)|shape\[\d\])", size):
                yield source.pattern("padded lengths", call, lengths)
    padded = _padded_targets(source)
    for call in source.of(ast.Call):
        if called(call) != "full" or len(call.args) < 2 or not padded:
            continue
        match = re.fullmatch(r"(\w+)\.(size\(1\)|shape\[1\])", ast.unparse(call.args[1]))
        if match and match[1] in padded:
            yield source.pattern("padded lengths", call, match[1])


def _padded_targets(source: Source) -> set[str]:
    """Return the names of padded labels that `CTCLoss` is given."""
    padded = {
        name
        for scope in source.scopes
        for name, value, _ in source.assigned(scope)
        if called(value) == "pad_sequence"
    }
    return {name for name in padded if re.search(r"label|target|tgt|^ys?$|text|transcript", name)}


@reads
def blank_class(source: Source) -> Iterator[Pattern]:
    """`SYMBOLS.index(c)` as labels beside `CTCLoss(blank=0)`: the first symbol is the blank."""
    if not _uses_ctc(source) or _blank(source) != 0:
        return
    text = source.code(source.tree)
    if _MOVED.search(text):
        return
    for call in source.of(ast.Call):
        if called(call) != "index" or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        alphabet = _alphabet(source, call, call.func.value)
        if alphabet and not _is_offset(source, call) and _is_label(source, call):
            yield source.pattern("blank is a class", call, ast.unparse(call.func.value))
            return
    for table in source.of(ast.DictComp):
        over = table.generators[0].iter
        if len(table.generators) != 1 or called(over) != "enumerate":
            continue
        assert isinstance(over, ast.Call)
        if len(over.args) != 1 or over.keywords or not isinstance(table.value, ast.Name):
            continue
        if not isinstance(table.generators[0].target, ast.Tuple):
            continue
        index = dotted(table.generators[0].target.elts[0])
        above = source.parent(table)
        if table.value.id != index or not isinstance(above, ast.Assign):
            continue
        name = dotted(above.targets[0]).rpartition(".")[2]
        is_moved = re.search(rf"{name}\[[^\]]*\]\s*\+ 1|{name}\.get\([^)]*\)\s*\+ 1", text)
        is_read = re.search(rf"\b{name}(\[|\.get\()", text)
        if not name or is_moved or not is_read or re.search(r"[^\w]\+ 1 for|\+= 1\b.*targ", text):
            continue
        if _alphabet(source, table, over.args[0]) and not re.search(rf"{name}\[['\"]", text):
            yield source.pattern("blank is a class", table, name)
            return


def _blank(source: Source) -> int | None:
    """Return the index of the blank that the losses of a file use."""
    found: set[int | None] = set()
    for call in source.of(ast.Call):
        if called(call) in _LOSSES:
            given = [each.value for each in call.keywords if each.arg == "blank"]
            given += call.args[:1] if called(call) == "CTCLoss" else call.args[4:5]
            value = resolved(source, source.scope(call), given[0]) if given else None
            found.add(whole(value) if given else 0)
    return found.pop() if len(found) == 1 else None


def _alphabet(source: Source, at: ast.AST, value: ast.expr) -> bool:
    """Whether the symbols are known, and the first of them is no blank."""
    value = resolved(source, source.scope(at), value)
    while isinstance(value, ast.Call) and called(value) in ("list", "tuple") and value.args:
        value = resolved(source, source.scope(at), value.args[0])
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
        return value.value[0] not in _BLANKS and value.value[0].isprintable()
    if isinstance(value, ast.List | ast.Tuple) and value.elts:
        first = getattr(value.elts[0], "value", "")
        return isinstance(first, str) and bool(first) and first[0] not in _BLANKS and (
            not _BLANK.search(first) and not first.startswith("<")
        )  # fmt: skip
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return _alphabet(source, at, value.left)
    if isinstance(value, ast.Call) and called(value) == "sorted" and value.args:
        return called(value.args[0]) == "set" or isinstance(value.args[0], ast.SetComp)
    return ast.unparse(value) in ("string.ascii_lowercase", "string.digits", "string.ascii_letters")


def _is_offset(source: Source, call: ast.Call) -> bool:
    above = source.parent(call)
    return isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add)


def _is_label(source: Source, call: ast.Call) -> bool:
    """Whether indices become a tensor, or the ids of a function that encodes."""
    return (
        any(
            called(each) in ("tensor", "LongTensor", "as_tensor", "array")
            or (isinstance(each, Function) and re.search(r"encode|label|target", each.name))
            for each in source.above(call)
        )
        and tensor_of(call) is not None
    )
