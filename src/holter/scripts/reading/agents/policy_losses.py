"""Policies whose loss has the opposite sign, or gives a reward to another action."""

import ast
import re
from collections.abc import Callable, Iterator

from holter.scripts.reading.source.expressions import tensor_of, unsigned
from holter.scripts.reading.source.objective import Term, objectives
from holter.scripts.reading.source.origins import Frame, collected, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_ADVANTAGE = re.compile(
    r"(^|_)(adv|advs|advantages?|returns?|rets?|rewards?|gae|td_error)(_|$)|^[RG]$"
)
_REWARD = re.compile(r"^(r|rew|rewards?)$|_rewards?$", re.I)
_COST = re.compile(r"cost|loss|err(?!or)|nll|len|dist(?!\b)|penal|energy|tour|regret|neg", re.I)
_BASELINE = re.compile(r"val|base|^v\b", re.I)
_TOUR = re.compile(r"(^|_)(tour|tsp|makespan|cost)s?(_|$)", re.I)
_LOG_PROB = re.compile(r"^(action_|new_)?log_?probs?$|^logps?$", re.I)
_OLD = re.compile(r"(^|_)(old|behaviou?r|prev|previous|rollout|stored)", re.I)
_NEW = re.compile(r"(^|_)(new|cur|current)", re.I)
_LIKE = {"squeeze", "sum", "view", "reshape", "flatten", "unsqueeze", "float", "to"}
_EITHER = {"min", "minimum", "max", "maximum"}
_DEEPEST = 6
_Test = Callable[[Source, ast.expr, Frame, int], bool]


@reads
def reversed_policy(source: Source) -> Iterator[Pattern]:
    """`(log_prob * advantage).mean()` is minimised: good actions become rarer."""
    if any(_TOUR.search(name.id) for name in source.of(ast.Name)):
        return  # of a length that is called a reward and made shorter
    for terms in objectives(source):
        signs = [term.sign * _gain_of(source, term) for term in terms]
        for term, sign in zip(terms, signs, strict=True):
            if sign > 0:
                yield source.pattern("reversed policy", term.node, "policy")
            is_added = term.sign > 0 and (term.weight or 1) > 0
            if is_added and -1 in signs and _is_entropy(source, term):
                yield source.pattern("reversed entropy", term.node, "entropy")


def _gain_of(source: Source, term: Term) -> int:
    """Return 1 if a term rises with the probability of good actions, -1 if it falls, else 0."""
    node = term.node
    if not isinstance(node, ast.Call) or called(node) not in _EITHER or len(node.args) != 2:
        return _gain(source, node, term.frame, _is_log_prob)
    gains = {
        _gain(source, value, frame, _is_ratio)
        for each in node.args
        for value, frame in _alternatives(source, each, term.frame)
    }
    return gains.pop() if len(gains) == 1 else 0


def _alternatives(source: Source, node: ast.expr, frame: Frame) -> Iterator[tuple[ast.expr, Frame]]:
    if isinstance(node, ast.Name):
        for value, where, sign in origins(source, node, frame):
            if sign > 0:
                yield value, where
    else:
        yield node, frame


def _gain(source: Source, node: ast.expr, frame: Frame, is_factor: _Test) -> int:
    """Return the sign of a product of an advantage and another factor, or 0."""
    sign, product = unsigned(node)
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
        return 0
    (of_left, left), (of_right, right) = unsigned(product.left), unsigned(product.right)
    for one, other in ((left, right), (right, left)):
        if one is None or other is None or not is_factor(source, one, frame, 0):
            continue
        if _is_advantage(source, other, frame):
            return sign * of_left * of_right
    return 0


def _is_advantage(source: Source, node: ast.expr, frame: Frame) -> bool:
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and _keeps(node)):
        inner = node.value if isinstance(node, ast.Subscript) else tensor_of(node)
        if inner is None:
            return False
        node = inner
    name = dotted(node).rpartition(".")[2]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return _is_advantage(source, node.left, frame)
    if not _ADVANTAGE.search(name) or _COST.search(name):
        return False
    return not _is_turned(source, node, frame, 0)


def _keeps(node: ast.Call) -> bool:
    return called(node) in {*_LIKE, "detach"} and isinstance(node.func, ast.Attribute)


def _is_turned(source: Source, node: ast.expr, frame: Frame, depth: int) -> bool:
    """Whether an advantage may have the opposite sign, or be one of costs."""
    for part in source.walk(node):
        if isinstance(part, ast.UnaryOp) and not isinstance(part.operand, ast.Constant):
            return True
        if isinstance(part, ast.Attribute) and _COST.search(part.attr):
            return True
        if isinstance(part, ast.BinOp) and _BASELINE.search(dotted(part.left)):
            return True
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            if _COST.search(part.id):
                return True
            # The negative of a distance is a reward, whatever its formula.
            if depth < _DEEPEST and not _REWARD.match(part.id):
                for value, where, _ in origins(source, part, frame):
                    if _is_turned(source, value, where, depth + 1):
                        return True
    return False


def _is_log_prob(source: Source, node: ast.expr, frame: Frame, depth: int) -> bool:
    """Whether a node is a log-probability, not negated."""
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.Subscript):
        return _is_log_prob(source, node.value, frame, depth + 1)
    if isinstance(node, ast.Call):
        if called(node) == "log_prob":
            return True
        held = list(collected(source, node, frame))
        if held:
            return all(_is_log_prob(source, each, frame, depth + 1) for each in held)
        inner = tensor_of(node) if called(node) in {*_LIKE, "gather"} else None
        if called(node) == "log_softmax":
            return depth > 0
        return inner is not None and _is_log_prob(source, inner, frame, depth + 1)
    if isinstance(node, ast.Name):
        values = list(origins(source, node, frame))
        if not values:
            return bool(_LOG_PROB.match(node.id)) and not _is_negated(source, node.id)
        return all(sign > 0 and _is_log_prob(source, value, where, depth + 1)
                   for value, where, sign in values)  # fmt: skip
    return False


def _is_negated(source: Source, name: str) -> bool:
    """Whether anything of this name, or put into it, is negated."""
    for node in source.walk(source.tree):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            text = ast.unparse(node.operand)
            if name in text or "log_prob" in text or "cross_entropy" in text:
                return True
    return "cross_entropy" in {called(call) for call in source.of(ast.Call)}


def _is_ratio(source: Source, node: ast.expr, frame: Frame, depth: int) -> bool:
    """Whether a node is the ratio of two probabilities, or that clamped."""
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.Call):
        if called(node) in ("clamp", "clip"):
            inner = tensor_of(node)
            return inner is not None and _is_ratio(source, inner, frame, depth + 1)
        return called(node) == "exp"
    if isinstance(node, ast.Name):
        values = list(origins(source, node, frame))
        return bool(values) and all(_is_ratio(source, value, where, depth + 1)
                                    for value, where, _ in values)  # fmt: skip
    return False


def _is_entropy(source: Source, term: Term) -> bool:
    """Whether a term is the entropy of a distribution: `dist.entropy()`."""
    node: ast.expr = term.node
    if isinstance(node, ast.Call) and (held := list(collected(source, node, term.frame))):
        return all(called(each) == "entropy" for each in held)
    return called(node) == "entropy" and isinstance(node, ast.Call) and not node.args


@reads
def inverted_ratio(source: Source) -> Iterator[Pattern]:
    """`exp(old - new)`, clipped about 1 as the ratio of a surrogate objective."""
    for call in source.of(ast.Call):
        if called(call) not in ("clamp", "clip") or not _is_about_one(call):
            continue
        ratio = tensor_of(call)
        frame = Frame(source.scope(call))
        if ratio is None:
            continue
        for value, where in _alternatives(source, ratio, frame):
            inner = tensor_of(value) if isinstance(value, ast.Call) else None
            if called(value) != "exp" or inner is None:
                continue
            for difference, place in _alternatives(source, inner, where):
                if isinstance(difference, ast.BinOp) and isinstance(difference.op, ast.Sub):
                    ages = [_age(source, side, place)
                            for side in (difference.left, difference.right)]  # fmt: skip
                    is_present = any(called(part) == "log_prob"
                                     for part in source.walk(difference.right))  # fmt: skip
                    if ages == ["old", "new"] or (ages == ["", "new"] and is_present):
                        yield source.pattern("inverted ratio", difference, ast.unparse(ratio))


def _is_about_one(call: ast.Call) -> bool:
    """Whether the bounds of a clamp are such as `1 - eps` and `1 + eps`."""
    bounds = [*call.args[-2:], *(keyword.value for keyword in call.keywords)]
    signs = {type(each.op) for each in bounds if isinstance(each, ast.BinOp)
             and isinstance(each.left, ast.Constant) and each.left.value == 1}  # fmt: skip
    return {ast.Sub, ast.Add} <= signs


def _age(source: Source, node: ast.expr, frame: Frame) -> str:
    """Return whether a log-probability is that of the policy that acted, or of the present one."""
    name = re.sub(r"\[.*", "", ast.unparse(node)).rpartition(".")[2]
    if any(called(part) == "log_prob" for part in source.walk(node)):
        return "new"
    while isinstance(node, ast.Subscript):
        node = node.value
    if _OLD.search(name):
        return "old"
    if isinstance(node, ast.Name):
        values = [value for value, _, _ in origins(source, node, frame)]
        if values and all(
            any(called(part) in ("log_prob", "evaluate", "evaluate_actions")
                for part in source.walk(value)) for value in values
        ):  # fmt: skip
            return "new"
        if _NEW.search(name):
            return "new"
        return "old" if _is_held(source, node.id) else ""
    return "new" if _NEW.search(name) else ""


def _is_held(source: Source, name: str) -> bool:
    """Whether a name is what a rollout has collected: `LP = torch.stack(logps)`."""
    made = [value for scope in source.scopes for other, value, _ in source.assigned(scope)
            if other == name]  # fmt: skip
    return bool(made) and all(
        called(value) in {*_LIKE, "stack", "cat", "tensor", "zeros", "as_tensor"} for value in made
    )
