"""Tokens: ids that clash with padding or change between runs, and labels of masked tokens."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import (
    argument,
    made_once,
    number,
    resolved,
    tensor_of,
    whole,
)
from holter.scripts.reading.source.origins import passed
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_LARGEST = 0.4  # share of tokens that is masked on purpose
_PADDING = re.compile(r"^(\w+_)?PAD(DING)?(_?(ID|IDX|INDEX|TOKEN|WORD))?$", re.I)
_UNKNOWN = re.compile(r"^(\w+_)?UNK(NOWN)?(_?(ID|IDX|INDEX|TOKEN|WORD))?$", re.I)
_UNKNOWN_WORD = re.compile(r"^\W*(unk|unknown|oov)\W*$", re.I)
_PADDING_WORD = re.compile(r"^\W*pad(ding)?\W*$", re.I)
_MASK = re.compile(r"(^|_)MASK(_?(ID|IDX|INDEX|TOKEN|TOK))?(_id)?$|mask_token", re.I)


@reads
def reserved_ids(source: Source) -> Iterator[Pattern]:
    """`{w: i for i, w in enumerate(words)}` beside PAD = 0: the first word has the same id."""
    special = dict(_special(source)) or dict(_given_padding(source))
    if not special:
        return
    highest = max(special.values())
    name_of = {place: name for name, place in special.items()}
    statements: list[ast.Assign | ast.Return] = [*source.of(ast.Assign), *source.of(ast.Return)]
    for assign in statements:
        first = None if assign.value is None else _first_id(source, assign, assign.value)
        if first is None or first > highest or first not in name_of:
            continue
        names = _tables(source, assign)
        if any(_is_looked_up(source, name, special) for name in names) and not any(
            _has_specials(source, name) for name in names
        ):
            yield source.pattern("reserved id", assign, name_of[first])


def _given_padding(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the id of padding that an embedding is given as a number: `padding_idx=0`."""
    for call in source.of(ast.Call):
        for each in call.keywords if called(call) == "Embedding" else ():
            place = whole(each.value)
            if each.arg == "padding_idx" and place is not None and place >= 0:
                yield "padding_idx", place


def _tables(source: Source, node: ast.Assign | ast.Return) -> set[str]:
    """Return the names of a vocabulary: what it is assigned to, and parameters."""
    if isinstance(node, ast.Assign):
        names = {dotted(node.targets[0]).rpartition(".")[2]}
    else:
        function = getattr(source.scope(node), "name", "")
        names = {dotted(each.targets[0]).rpartition(".")[2] for each in source.of(ast.Assign)
                 if function and called(each.value) == function}  # fmt: skip
    names -= {""}
    for function_ in source.of(*Function.__args__):
        for parameter in parameters_of(function_):
            if any(dotted(each).rpartition(".")[2] in names
                   for each in passed(source, function_, parameter)):  # fmt: skip
                names = names | {parameter}
    return names


def _special(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the constants that are ids of padding and unknown words: `PAD, UNK = 0, 1`."""
    for name, value, _ in source.assigned(source.tree):
        place = whole(value)
        if place is not None and place >= 0 and (_PADDING.match(name) or _UNKNOWN.match(name)):
            yield name, place


def _first_id(source: Source, assign: ast.stmt, value: ast.expr) -> int | None:
    """Return the least id that a vocabulary gives to a word, or None."""
    if isinstance(value, ast.Call) and called(value) == "dict" and len(value.args) == 1:
        pairs = value.args[0]
        if isinstance(pairs, ast.GeneratorExp | ast.ListComp) and isinstance(pairs.elt, ast.Tuple):
            key, place = pairs.elt.elts
            value = ast.DictComp(key=key, value=place, generators=pairs.generators)
    if not isinstance(value, ast.DictComp) or len(value.generators) != 1:
        return None
    loop = value.generators[0]
    over, target = loop.iter, loop.target
    if called(over) != "enumerate" or not isinstance(over, ast.Call) or not over.args:
        return None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    start = argument(over, 0, "start")
    begin = 0 if start is None else whole(start)
    if len(over.args) > 1:
        begin = whole(over.args[1])
    index, offset = dotted(target.elts[0]), 0
    given = value.value
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add):
        sides = (given.left, given.right)
        offsets = [whole(resolved(source, source.tree, each)) for each in sides
                   if dotted(each) != index]  # fmt: skip
        if len(offsets) != 1 or offsets[0] is None:
            return None
        offset = offsets[0]
    elif dotted(given) != index:
        return None
    if begin is None or not _is_words_alone(source, assign, over.args[0]):
        return None
    return begin + offset


def _is_words_alone(source: Source, at: ast.AST, words: ast.expr) -> bool:
    """Whether a list is of words that were counted, without special ones in front."""
    words = resolved(source, source.scope(at), words)
    text = ast.unparse(words)
    if re.search(r"pad|unk|special|<|\[['\"]|\+", text, re.I) and not isinstance(
        words, ast.ListComp
    ):
        return False
    if isinstance(words, ast.ListComp | ast.SetComp):
        return len(words.generators) == 1 and not re.search(r"pad|unk|special", text, re.I)
    return called(words) in ("sorted", "most_common", "set", "keys", "list")


def _is_looked_up(source: Source, name: str, special: dict[str, int]) -> bool:
    """Whether a table gives the id of unknown words for those that it lacks."""
    for call in source.of(ast.Call):
        if called(call) != "get" or len(call.args) != 2 or not isinstance(call.func, ast.Attribute):
            continue
        is_special = dotted(call.args[1]) in special or (
            "padding_idx" in special and whole(call.args[1]) is not None
        )
        if dotted(call.func.value).rpartition(".")[2] == name and is_special:
            return True
    return False


def _has_specials(source: Source, name: str) -> bool:
    """Whether special words are put into a table: `vocab["<pad>"] = 0`."""
    text = source.code(source.tree)
    return bool(re.search(rf"\b{name}\[['\"]|\b{name}\.(update|setdefault)\(|\+ N_SPECIAL", text))


@reads
def unknown_as_padding(source: Source) -> Iterator[Pattern]:
    """`vocab.get(w, 0)` with `{"<pad>": 0, "<unk>": 1}`: unknown words are taken for padding."""
    for assign in source.of(ast.Assign):
        table = assign.value
        name = dotted(assign.targets[0]).rpartition(".")[2]
        if not isinstance(table, ast.Dict) or not name:
            continue
        ids: dict[str, int] = {}
        for key, value in zip(table.keys, table.values, strict=True):
            word = getattr(key, "value", "")
            place = whole(resolved(source, source.scope(assign), value))
            if isinstance(word, str) and place is not None:
                ids["pad" if _PADDING_WORD.match(word) else
                    "unk" if _UNKNOWN_WORD.match(word) else word] = place  # fmt: skip
        if "pad" not in ids or "unk" not in ids or ids["pad"] == ids["unk"]:
            continue
        for call in source.of(ast.Call):
            if called(call) != "get" or len(call.args) != 2:
                continue
            if not isinstance(call.func, ast.Attribute):
                continue
            if dotted(call.func.value).rpartition(".")[2] != name:
                continue
            missing = whole(resolved(source, source.scope(call), call.args[1]))
            if missing == ids["pad"]:
                yield source.pattern("unknown as padding", call, name)


@reads
def masked_labels(source: Source) -> Iterator[Pattern]:
    """`labels = ids.clone()` after `ids[chosen] = MASK`: the answers are masked as well."""
    for function in source.of(*Function.__args__):
        masked = list(_masked(source, function))
        for name, chosen, at in masked:
            for other, value, statement in source.assigned(function):
                if other == name or not re.search(r"label|target|(^|_)y$|answers?|truth", other):
                    continue
                if _copied(value) != name:
                    continue
                if statement.lineno > at.lineno and not _is_other_after(source, function, name, at):
                    yield source.pattern("labels after masking", statement, name)
            for other, statement in _ignored(source, function, chosen):
                yield source.pattern("visible labels", statement, other)


def _masked(source: Source, function: ast.AST) -> Iterator[tuple[str, str, ast.Assign]]:
    """Yield what gets the id of the mask: tensor, where, and the statement."""
    for node in source.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        for tensor, where, value in _fillings(node):
            if tensor and _is_mask_id(value):
                yield tensor, _chosen(where), node


def _fillings(node: ast.Assign) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Yield the tensor that is changed, if one is, the places and what they get: `x[m] = v`."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Subscript):
        yield dotted(target.value), target.slice, value
    elif called(value) in ("masked_fill", "masked_fill_") and isinstance(value, ast.Call):
        given, where = tensor_of(value), argument(value, 0, "mask")
        filled = argument(value, 1, "value")
        if given is not None and where is not None and filled is not None:
            yield dotted(given) if dotted(given) == dotted(target) else "", where, filled
    elif called(value) == "where" and isinstance(value, ast.Call) and len(value.args) == 3:
        given = value.args[2]
        is_same = dotted(given) == dotted(target)
        yield dotted(given) if is_same else "", value.args[0], value.args[1]


def _is_mask_id(value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and called(value) in ("tensor", "full_like", "full"):
        if not value.args:
            return False
        value = value.args[-1]
    name = dotted(value).rpartition(".")[2]
    if called(value) == "convert_tokens_to_ids":
        return "mask" in ast.unparse(value).lower()
    return bool(_MASK.search(name)) or "mask_token" in dotted(value)


def _chosen(where: ast.expr) -> str:
    """Return the name of the positions that are predicted, of `chosen & (how < 0.8)` its first."""
    while isinstance(where, ast.BinOp) and isinstance(where.op, ast.BitAnd):
        where = where.left
    return dotted(where)


def _copied(value: ast.expr) -> str:
    while isinstance(value, ast.Call) and called(value) in ("clone", "copy", "detach", "long"):
        inner = tensor_of(value)
        if inner is None:
            return ""
        value = inner
    return dotted(value)


def _is_other_after(source: Source, function: ast.AST, name: str, at: ast.Assign) -> bool:
    """Whether a name was given something else after it was masked, such as a batch."""
    return any(
        other == name and statement.lineno > at.lineno and statement is not at
        for other, _, statement in source.assigned(function)
    )


def _ignored(source: Source, function: ast.AST, chosen: str) -> Iterator[tuple[str, ast.Assign]]:
    """Yield labels that the loss ignores just where tokens were masked."""
    if not chosen:
        return
    for node in source.walk(function):
        for _, where, value in _fillings(node) if isinstance(node, ast.Assign) else ():
            if dotted(where) == chosen and _is_ignored(source, value):
                assert isinstance(node, ast.Assign)
                yield chosen, node


def _is_ignored(source: Source, value: ast.expr) -> bool:
    while called(value) in ("tensor", "full_like") and isinstance(value, ast.Call) and value.args:
        value = value.args[-1]
    if whole(value) == -100:
        return True
    if re.fullmatch(r"(\w+\.)*(IGNORE\w*|ignore_index|ignore)", dotted(value), re.I):
        made = made_once(source, source.tree, dotted(value))
        return made is None or (whole(made) or 0) < 0
    return False


@reads
def mostly_masked(source: Source) -> Iterator[Pattern]:
    """`chosen = torch.rand(ids.shape) > 0.15`: 85 % of the tokens are masked."""
    for function in source.of(*Function.__args__):
        places = {chosen for _, chosen, _ in _masked(source, function)} - {""}
        for name, value, statement in source.assigned(function):
            test = value
            while isinstance(test, ast.BinOp) and isinstance(test.op, ast.BitAnd):
                test = test.left
            if name not in places or not isinstance(test, ast.Compare):
                continue
            share = number(source, test.comparators[0])
            is_above = isinstance(test.ops[0], ast.Gt | ast.GtE)
            is_drawn = called(test.left) in ("rand", "rand_like", "random")
            if is_above and is_drawn and share is not None and share <= _LARGEST:
                yield source.pattern("mostly masked", statement, ast.unparse(test))


@reads
def labels_behind(source: Source) -> Iterator[Pattern]:
    """`ids = [BOS] + words` and `labels = tags + [IGNORE]`: labels stand one place too early."""
    for scope in source.scopes:
        joined = [(name, *_ends(value), at) for name, value, at in source.assigned(scope)]
        for name, front, back, at in joined:
            is_label = re.match(r"(\w+_)?(labels?|tags?)(_\w+)?$", name)
            others = [other for other, first, last, _ in joined if other != name
                      and re.search(r"ids|tokens|words|^x$|input", other)
                      and bool(first) != bool(front) and bool(last) != bool(back)]  # fmt: skip
            if is_label and others and len(front + back) and not (front and back):
                yield source.pattern("labels behind", at, name)


def _ends(value: ast.expr) -> tuple[str, str]:
    """Return the special element in front of a list, and the one at its end."""
    front = back = ""
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        if isinstance(value.right, ast.List) and len(value.right.elts) == 1:
            back, value = ast.unparse(value.right), value.left
        elif isinstance(value.left, ast.List) and len(value.left.elts) == 1:
            front, value = ast.unparse(value.left), value.right
        else:
            break
    return front, back


_WORDS = re.compile(r"(^|_)(text|chars?|characters|words?|tokens?|vocab\w*|tags?)(_|$)", re.I)


@reads
def unordered(source: Source) -> Iterator[Pattern]:
    """`LABELS = list({"yes", "no"})` beside saved weights: the next process has another order."""
    text = source.code(source.tree)
    is_saved = re.search(r"torch\.save\(|save_pretrained\(|save_model\(", text)
    if not is_saved or "PYTHONHASHSEED" in text:
        return
    for name, value, statement in source.assigned(source.tree):
        if called(value) not in ("list", "tuple") or not isinstance(value, ast.Call):
            continue
        given = value.args[0] if len(value.args) == 1 else None
        is_literal = isinstance(given, ast.Set) and all(
            isinstance(getattr(each, "value", None), str) for each in given.elts
        )
        is_text = (called(given or value) == "set" and isinstance(given, ast.Call) and given.args
                   and _WORDS.search(dotted(given.args[0])))  # fmt: skip
        if not is_literal and not is_text:
            continue
        by_place = re.search(rf"\b{name}\.index\(|enumerate\({name}\b", text)
        is_kept = re.search(rf"(save|dump)\([^\n]*\b{name}\b|{name}\.sort|sorted\({name}", text)
        if by_place and not is_kept:
            yield source.pattern("unordered ids", statement, name)
