"""Directions and sides: mixed scores, augmentation of the wrong part, clamped labels, warm-ups."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.margins import summands
from holter.scripts.reading.origins import Frame, origins
from holter.scripts.reading.source import Function, Pattern, Source, called, dotted
from holter.scripts.reading.values import argument, number, tensor_of

_HIGHER = re.compile(
    r"(^|_)(acc|accs|accuracy|f1|auc|auroc|iou|miou|dice|recall|precision|correct|hits?|ok|map|r2"
    r"|bleu|psnr|ssim|ndcg|mrr)(_|$|\d)", re.I
)  # fmt: skip
_LOWER = re.compile(
    r"(^|_)(loss|losses|err|error|errors|mae|rmse|mse|nll|perplexity|ppl|wer|cer|mape)(_|$|\d)",
    re.I,
)
_BEST = re.compile(r"best|lowest|highest|min_|max_", re.I)
_FLAG = re.compile(r"^(self\.)?(is_?)?(train|training|augment|aug|do_augment)$")
_CROSS = {"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"}
_PASSED_ON = {"to", "long", "cuda", "view", "reshape", "flatten", "squeeze"}


def mixed_score(source: Source) -> Iterator[Pattern]:
    """`score = mae + accuracy` and `if score < best`: one of both is selected to be worse."""
    for branch in source.of(ast.If):
        test = branch.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        if not isinstance(test.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE):
            continue
        sides = [test.left, test.comparators[0]]
        best = [each for each in sides if _BEST.search(dotted(each) or ast.unparse(each))]
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


def augmented_evaluation(source: Source) -> Iterator[Pattern]:
    """`if train: steps = [CenterCrop(160)]` and random crops otherwise: the sides are exchanged."""
    for node in source.of(ast.If, ast.IfExp):
        assert isinstance(node, ast.If | ast.IfExp)
        test, is_negated = node.test, False
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, is_negated = test.operand, True
        if not _FLAG.match(dotted(test)):
            continue
        if isinstance(node, ast.IfExp):
            then, other = _random(source, node.body), _random(source, node.orelse)
        else:
            then, other = _branches(source, node)
        if then is None or other is None or then == other:
            continue
        if then is is_negated:
            yield source.pattern("augmented evaluation", node.test, ast.unparse(node.test))


def _branches(source: Source, node: ast.If) -> tuple[bool | None, bool | None]:
    """Return whether the branch and its alternative are random transforms."""
    if len(node.body) != 1:
        return None, None
    only = node.body[0]
    if isinstance(only, ast.Return):
        rest = node.orelse
        if not rest:
            above = source.parent(node)
            block = getattr(above, "body", [])
            rest = block[block.index(node) + 1 :] if node in block else []
        last = rest[0] if rest else None
        value = last.value if isinstance(last, ast.Return) else None
        return (_random(source, only.value), _random(source, value))
    if not isinstance(only, ast.Assign) or len(only.targets) != 1:
        return None, None
    name = dotted(only.targets[0])
    if node.orelse:
        other = node.orelse[0]
        same = isinstance(other, ast.Assign) and dotted(other.targets[0]) == name
        value = other.value if isinstance(other, ast.Assign) and same else None
    else:  # the value that it has otherwise was assigned before
        above = source.parent(node)
        block = getattr(above, "body", [])
        before = block[: block.index(node)] if node in block else []
        made = [each.value for each in before if isinstance(each, ast.Assign)
                and dotted(each.targets[0]) == name]  # fmt: skip
        value = made[-1] if made else None
    return _random(source, only.value), _random(source, value)


def _random(source: Source, node: ast.expr | None) -> bool | None:
    """Whether transforms are random, or fixed ones; None for what is not known."""
    if node is None:
        return None
    names = [called(each) for each in source.walk(node) if isinstance(each, ast.Call)]
    if any(re.search(r"^Random(?!Sampler)|Jitter|AutoAugment|TrivialAugment|RandAugment", name)
           for name in names):  # fmt: skip
        return True
    is_fixed = any(re.search(r"^(CenterCrop|Resize|ToTensor|Compose|Normalize)$", name)
                   for name in names)  # fmt: skip
    return False if is_fixed and not any(isinstance(each, ast.Starred)
                                         for each in source.walk(node)) else None  # fmt: skip


def clamped_labels(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(logits, y.clamp(min=0))` where -1 is unknown: it becomes the class 0."""
    ignored = re.search(r">= 0|!= -1|> -1|== -1|< 0|ignore_index", source.code(source.tree))
    for call in source.of(ast.Call):
        made = source.named(dotted(call.func).rpartition(".")[2])
        is_loss = called(call) in _CROSS or (bool(made) and all(called(each) in _CROSS
                                                               for each in made))  # fmt: skip
        if not is_loss or len(call.args) < 2:
            continue
        options = {each.arg: each.value for instance in (call, *made)
                   if isinstance(instance, ast.Call) for each in instance.keywords}  # fmt: skip
        if getattr(options.get("reduction"), "value", "mean") == "none" or "weight" in options:
            continue
        target = call.args[1]
        while isinstance(target, ast.Call) and called(target) in _PASSED_ON:
            target = tensor_of(target) or target.func
        if isinstance(target, ast.Name):
            values = [value for name, value, _ in source.assigned(source.scope(target))
                      if name == target.id]  # fmt: skip
            target = values[-1] if len(values) == 1 else target
        if not isinstance(target, ast.Call) or isinstance(tensor_of(target), ast.Subscript):
            continue
        lowest = argument(target, 0, "min")
        is_clamped = called(target) in ("clamp", "clamp_min", "clip", "relu", "abs", "maximum")
        is_zero = called(target) in ("relu", "abs") or number(source, lowest) == 0
        has_top = called(target) in ("clamp", "clip") and argument(target, 1, "max") is not None
        if is_clamped and is_zero and not has_top and ignored:
            yield source.pattern("clamped labels", call, ast.unparse(target))


def whole_factor(source: Source) -> Iterator[Pattern]:
    """`if step < warmup: return (step + 1) // warmup` of a LambdaLR: 0 until its last step."""
    if not any(called(call) in ("LambdaLR", "MultiplicativeLR") or re.search(
            r"param_group", source.code(source.tree)) for call in source.of(ast.Call)):  # fmt: skip
        return
    for node in source.of(ast.BinOp, ast.Call):
        divided: ast.AST = node
        if isinstance(node, ast.Call):
            if called(node) not in ("int", "floor") or len(node.args) != 1:
                continue
            divided = node.args[0]
        is_whole = isinstance(divided, ast.BinOp) and isinstance(
            divided.op, ast.Div if isinstance(node, ast.Call) else ast.FloorDiv
        )
        if not isinstance(divided, ast.BinOp) or not is_whole:
            continue
        above = source.parent(node)
        if not isinstance(above, ast.Return | ast.IfExp | ast.Lambda):
            continue
        branch = next((each for each in source.above(node)
                       if isinstance(each, ast.If | ast.IfExp | Function)), None)  # fmt: skip
        test = branch.test if isinstance(branch, ast.If | ast.IfExp) else None
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Lt | ast.LtE):
            continue
        bound = ast.unparse(test.comparators[0])
        is_share = ast.unparse(divided.right) == bound
        if is_share and dotted(test.left) in {dotted(each) for each in ast.walk(divided.left)}:
            yield source.pattern("rounded share", node, ast.unparse(node))
