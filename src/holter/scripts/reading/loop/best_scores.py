"""Best scores and counters of epochs that are not updated, or are compared the wrong way."""

import ast
import re
from collections.abc import Iterator, Sequence

from holter.scripts.reading.source.expressions import number, summands, tensor_of
from holter.scripts.reading.source.loops import LOOPS, outer_loops
from holter.scripts.reading.source.metric_names import polarity
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_BEST = re.compile(r"best|(^|_)(min|max|lowest|highest)_(val_|valid_)?(loss|acc|score)", re.I)
_SAVING = {"save", "state_dict", "deepcopy", "save_pretrained", "save_checkpoint", "save_model"}
_SCORE = re.compile(r"elbo|log_?lik|(^|_)ll($|_)|score|reward", re.I)
_BEST_NAME = re.compile(r"best", re.I)
# A loss that is turned around, and attacks, which look for the largest loss.
_TURNED = re.compile(r"neg|minus|inv|gain|improve|reduc|drop|decrease|ratio|reward|return", re.I)
_ATTACK = re.compile(r"adv|attack|delta|perturb|hardest|restart", re.I)
_HIGHER = re.compile(
    r"(^|_)(acc|accs|accuracy|f1|auc|auroc|iou|miou|dice|recall|precision|correct|hits?|ok|map|r2"
    r"|bleu|psnr|ssim|ndcg|mrr)(_|$|\d)", re.I
)  # fmt: skip
_LOWER = re.compile(
    r"(^|_)(loss|losses|err|error|errors|mae|rmse|mse|nll|perplexity|ppl|wer|cer|mape)(_|$|\d)",
    re.I,
)
_EXTREME = re.compile(r"best|lowest|highest|min_|max_", re.I)


def key_of(node: ast.AST) -> str:
    """Return the code of a name, an attribute, or an entry with a constant key, else ""."""
    if isinstance(node, ast.Name | ast.Attribute):
        return dotted(node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return ast.unparse(node) if dotted(node.value) else ""
    return ""


def _changes(source: Source, name: str) -> list[ast.AST]:
    """Return the nodes that give a value to a name, an attribute or an entry, or to its holder."""
    found: list[ast.AST] = []
    holder = name.partition("[")[0]
    for node in source.of(ast.Name, ast.Attribute, ast.Subscript):
        if not isinstance(node.ctx, ast.Store):  # type: ignore[attr-defined]
            continue
        code = key_of(node)
        if code and (code in (name, holder) or code.rpartition(".")[2] == name.rpartition(".")[2]):
            found.append(node)
    for call in source.of(ast.Call):
        is_change = called(call) in (
            "update",
            "setattr",
            "__setitem__",
            "globals",
            "load_state_dict",
        )
        if is_change and holder in ast.unparse(call):
            found.append(call)
    return found


@reads
def unimproved(source: Source) -> Iterator[Pattern]:
    """`if loss < best:` saves the weights, and `best` keeps its initial value."""
    for node in source.of(ast.If):
        for test in [node.test, *(node.test.values if isinstance(node.test, ast.BoolOp) else ())]:
            if not isinstance(test, ast.Compare) or len(test.ops) != 1:
                continue
            if not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                continue
            sides = [test.left, test.comparators[0]]
            codes = [key_of(side) for side in sides]
            best = [code for code in codes if _BEST.search(code)]
            if len(best) != 1 or not any(isinstance(each, LOOPS) for each in
                                         outer_loops(source, node)):  # fmt: skip
                continue
            if not _saves(source, node) or not _is_measure(source, sides, codes, best[0]):
                continue
            if _stays(source, node, best[0]):
                yield source.pattern("best never updated", test, best[0])


@reads
def turned(source: Source) -> Iterator[Pattern]:
    """`if -elbo > best:` where `elbo = -(reconstruction + kl)`: the worst one is kept."""
    for node in source.of(ast.If):
        if not isinstance(node.test, ast.Compare) or not _is_improvement(source, node):
            continue
        left, operation = node.test.left, node.test.ops[0]
        if not isinstance(left, ast.UnaryOp) or not isinstance(left.op, ast.USub):
            continue
        name = dotted(left.operand)
        values = [value for other, value, _ in source.assigned(source.scope(node)) if other == name]
        is_score = bool(_SCORE.search(name)) and bool(values) and all(
            isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.USub) for each in values
        )  # fmt: skip
        if is_score and isinstance(operation, ast.Gt | ast.GtE):
            yield source.pattern("kept worst", node.test, name)


@reads
def stale_entry(source: Source) -> Iterator[Pattern]:
    """`epoch - best["epoch"] > patience`, where an improvement stores the other entries only."""
    for node in source.of(ast.If):
        if not isinstance(node.test, ast.Compare) or not _is_improvement(source, node):
            continue
        stored = {key_of(each) for statement in node.body for each in source.walk(statement)
                  if isinstance(getattr(each, "ctx", None), ast.Store)}  # fmt: skip
        holders = {key.partition("[")[0] for key in stored if "[" in key}
        loops = _around(source, node)
        if not loops or holders & stored:
            continue
        for each in source.walk(loops[0]):
            if not isinstance(each, ast.Compare):
                continue
            for part in source.walk(each):
                key = key_of(part)
                is_entry = "[" in key and key.partition("[")[0] in holders and key not in stored
                if is_entry and _BEST.search(key) and _stays(source, node, key):
                    yield source.pattern("best never updated", each, key)


def _saves(source: Source, node: ast.If) -> bool:
    """Whether the body of a condition keeps weights, or the epoch at which they were best."""
    for statement in node.body:
        for each in source.walk(statement):
            if called(each) in _SAVING:
                return True
            if isinstance(each, ast.Assign) and any(
                _BEST.search(key_of(target))
                or re.search("patience|wait|bad|no_improve", key_of(target))
                for target in each.targets
            ):
                return True
    return False


def _is_measure(source: Source, sides: list[ast.expr], codes: list[str], best: str) -> bool:
    """Whether the other side is a measured value, not a setting."""
    other = sides[1 - codes.index(best)]
    return number(source, other) is None


def _stays(source: Source, node: ast.If, name: str) -> bool:
    """Whether a best value is only ever given its start: infinity, 0, None or a number."""
    changes = _changes(source, name)
    starts = []
    for change in changes:
        above = source.parent(change)
        if isinstance(change, ast.Call) or isinstance(above, ast.AugAssign):
            return False
        statement = next(
            (each for each in source.above(change) if isinstance(each, ast.stmt)), None
        )
        if not isinstance(statement, ast.Assign):
            return False
        inside = {each for loop in _around(source, node) for each in source.walk(loop)}
        if statement in inside and any(each in inside and isinstance(each, LOOPS)
                                       for each in source.above(statement)):  # fmt: skip
            return False
        value: ast.expr = statement.value
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = dict(zip(target.elts, value.elts, strict=False))
            value = next((v for t, v in pairs.items() if t is change), value)
        if isinstance(value, ast.Dict):
            key = name.rpartition("[")[2].strip("]'\"")
            value = next((v for k, v in zip(value.keys, value.values, strict=True)
                          if getattr(k, "value", None) == key), value)  # fmt: skip
        if statement in inside and source.parent(statement) is not node:
            return False
        starts.append(value)
    return bool(starts) and all(_is_start(each) for each in starts)


def _around(source: Source, node: ast.AST) -> Sequence[ast.AST]:
    """Return the innermost loop that turns from one comparison to the next."""
    loops = [each for each in source.above(node) if isinstance(each, LOOPS)]
    return loops[:1]


def _is_start(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return bool(re.fullmatch(
        r"-?\s*(float\(['\"][-+]?inf(inity)?['\"]\)|(np|math|torch|numpy)\.(inf|Inf|infty)|inf|INF"
        r"|1e\+?\d+|1\d{3,}(\.\d*)?|9{3,}(\.\d*)?|sys\.maxsize|0|0\.0|1|1\.0|None)", text,
    ))  # fmt: skip


@reads
def counters(source: Source) -> Iterator[Pattern]:
    """A counter of epochs without improvement that an improvement does not set to 0."""
    for node in source.of(ast.If):
        if not isinstance(node.test, ast.Compare) or not _is_improvement(source, node):
            continue
        branches = {"better": node.body, "worse": node.orelse}
        counted = {side: set(_counted(source, body)) for side, body in branches.items()}
        reset = {side: _reset(source, body) for side, body in branches.items()}
        for name in sorted(counted["worse"] | counted["better"]):
            if not _stops(source, name):
                continue
            changes = _changes(source, name)
            resets = [
                each for each in changes if not isinstance(source.parent(each), ast.AugAssign)
            ]
            if name in counted["better"] and name in reset["worse"]:
                yield source.pattern("exchanged counter", node.test, name)
            elif name in counted["worse"] and not _is_reset_in_loop(source, node, resets):
                yield source.pattern("counter never reset", node.test, name)


def _is_improvement(source: Source, node: ast.If) -> bool:
    """Whether a condition asks for a better value, and its body keeps it."""
    test = node.test
    assert isinstance(test, ast.Compare)
    if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return False
    sides = [test.left, test.comparators[0]]
    best = {key_of(each) for side in sides for each in source.walk(side)
            if _BEST.search(key_of(each))}  # fmt: skip
    stored = {key_of(each) for statement in node.body for each in source.walk(statement)
              if isinstance(getattr(each, "ctx", None), ast.Store)}  # fmt: skip
    return bool(best & stored)


def _counted(source: Source, body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        for each in source.walk(statement):
            is_sum = isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add)
            if is_sum and getattr(each.value, "value", None) == 1 and key_of(each.target):  # type: ignore[attr-defined]
                yield key_of(each.target)  # type: ignore[attr-defined]


def _reset(source: Source, body: list[ast.stmt]) -> set[str]:
    return {key_of(target) for statement in body for each in source.walk(statement)
            if isinstance(each, ast.Assign) and getattr(each.value, "value", None) == 0
            for target in each.targets}  # fmt: skip


def _stops(source: Source, name: str) -> bool:
    """Whether a counter ends the training: it is compared, and the loop is left."""
    last = name.rpartition(".")[2]
    for each in source.of(ast.If):
        if not isinstance(each.test, ast.Compare | ast.BoolOp):
            continue
        compared = {key_of(part).rpartition(".")[2] for part in source.walk(each.test)}
        inside = [part for statement in each.body for part in source.walk(statement)]
        leaves = any(
            isinstance(part, ast.Break | ast.Return)
            or (isinstance(part, ast.Assign) and getattr(part.value, "value", None) is True)
            for part in inside
        )
        if last in compared and leaves:
            return True
    return False


def _is_reset_in_loop(source: Source, node: ast.If, resets: list[ast.AST]) -> bool:
    """Whether something gives a counter another value between two comparisons."""
    loops = [each for each in source.above(node) if isinstance(each, LOOPS)]
    for each in resets:
        if isinstance(each, ast.Call):
            return True
        if any(each in source.walk(loop) for loop in loops):
            return True
        scope = source.scope(each)
        if not loops and getattr(scope, "name", "") != "__init__" and isinstance(scope, Function):
            return True
        if loops and scope is not source.scope(node) and getattr(scope, "name", "") != "__init__":
            return True
    return False


@reads
def worst(source: Source) -> Iterator[Pattern]:
    """`if val_loss > best:` where the body keeps it as the best one."""
    for node in source.of(ast.If):
        for test in [node.test, *(node.test.values if isinstance(node.test, ast.BoolOp) else ())]:
            if not isinstance(test, ast.Compare) or len(test.ops) != 1:
                continue
            left, right = dotted(test.left), dotted(test.comparators[0])
            if not left or not _BEST_NAME.search(right) or _BEST_NAME.search(left):
                continue
            if _TURNED.search(left + right) or _is_attack(source, node):
                continue
            if not _is_kept(node, left):
                continue
            name = left.rpartition(".")[2]
            rises = isinstance(test.ops[0], ast.Gt | ast.GtE)
            falls = isinstance(test.ops[0], ast.Lt | ast.LtE)
            low, high = polarity(source, node, name, right.rpartition(".")[2])
            if (rises and low and not high) or (falls and high and not low):
                yield source.pattern("kept worst", test, left)


def _is_attack(source: Source, node: ast.If) -> bool:
    """Whether a condition keeps a perturbation of inputs, or is in a function for that."""
    names = {dotted(each) for part in node.body for each in source.walk(part)}
    names.add(getattr(source.scope(node), "name", ""))
    return any(_ATTACK.search(name) for name in names)


def _is_kept(node: ast.If, name: str) -> bool:
    """Whether the body of a condition gives the value to the name of the best one."""
    for statement in node.body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Assign) and any(
                _BEST_NAME.search(dotted(each))
                for target in part.targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name | ast.Attribute)
            ):
                return any(dotted(each) == name for each in ast.walk(part.value))
    return False


@reads
def mixed_score(source: Source) -> Iterator[Pattern]:
    """`score = mae + accuracy` and `if score < best`: one of both is selected to be worse."""
    for branch in source.of(ast.If):
        test = branch.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        if not isinstance(test.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE):
            continue
        sides = [test.left, test.comparators[0]]
        best = [each for each in sides if _EXTREME.search(dotted(each) or ast.unparse(each))]
        score = next((each for each in sides if each not in best), None)
        if len(best) != 1 or not isinstance(score, ast.Name):
            continue
        found: dict[int, set[str]] = {}
        frame = Frame(source.scope(branch))
        values = list(origins(source, score, frame))
        if len(values) != 1 or not isinstance(values[0].node, ast.BinOp):
            continue
        parts = list(summands(values[0].node))
        for sign, part in parts:
            side = _side(source, part, values[0].frame)
            if side:
                found.setdefault(sign if side == "higher" else -sign, set()).add(ast.unparse(part))
        if len(found) == 2:
            yield source.pattern("mixed score", values[0].node, score.id)


def _side(source: Source, node: ast.expr, frame: Frame, depth: int = 0) -> str:
    """Return whether a figure is better if "higher" or "lower", or "" if that is not known."""
    if depth > 5:
        return ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        if isinstance(node.op, ast.Mult) and number(source, node.left) is not None:
            value = number(source, node.left)
            return _side(source, node.right, frame, depth + 1) if value and value > 0 else ""
        return _side(source, node.left, frame, depth + 1)
    if isinstance(node, ast.Call) and called(node) in ("mean", "item", "float", "sum"):
        inner = tensor_of(node)
        return _side(source, inner, frame, depth + 1) if inner is not None else ""
    name = dotted(node).rpartition(".")[2]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        name = str(node.slice.value)
    if isinstance(node, ast.Call):
        name = called(node)
    is_high, is_low = bool(_HIGHER.search(name)), bool(_LOWER.search(name))
    if is_high != is_low:
        return "higher" if is_high else "lower"
    if isinstance(node, ast.Name) and not is_high:
        values = list(origins(source, node, frame))
        if len(values) == 1:
            return _side(source, values[0].node, values[0].frame, depth + 1)
    return ""
