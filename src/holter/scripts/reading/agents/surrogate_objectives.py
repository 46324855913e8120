"""Surrogate objectives of policies: the bound, the entropy, the ratio and the baseline."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.agents.bootstrapping import factors, title
from holter.scripts.reading.source.expressions import tensor_of, unsigned
from holter.scripts.reading.source.objective import Term, objectives
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called

_SMALLER, _LARGER = {"min", "minimum"}, {"max", "maximum"}
_RATIO = re.compile(r"(^|_)(ratios?|rho|importance|is_weights?)(_|$|\d)", re.I)
_ADVANTAGE = re.compile(r"(^|_)(adv|advs|advantages?|td_error|delta)(_|$)", re.I)
_CONSTANT = {"detach", "item", "numpy", "tolist", "stop_gradient"}


@reads
def optimistic(source: Source) -> Iterator[Pattern]:
    """`-torch.max(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)`: no bound on good actions."""
    for terms in objectives(source):
        for term in terms:
            sign = _sign_of_bound(source, term)
            if sign is None:
                continue
            is_larger = called(term.node) in _LARGER
            # What is maximised takes the smaller one, and a loss the larger one.
            if term.sign * sign < 0 and is_larger == (sign > 0):
                yield source.pattern("optimistic bound", term.node, called(term.node))
        if any(_sign_of_bound(source, term) is not None or _is_scored(term)
               for term in terms):  # fmt: skip
            for term in terms:
                is_positive = term.sign > 0 and (term.weight is None or term.weight > 0)
                if is_positive and called(term.node) == "entropy" and not term.node.args:  # type: ignore[attr-defined]
                    yield source.pattern("reversed entropy", term.node, "entropy")


def _sign_of_bound(source: Source, term: Term) -> int | None:
    """Return the sign of both products in `min(ratio * a, clipped * a)`; None if it is no such."""
    node = term.node
    if not isinstance(node, ast.Call) or called(node) not in _SMALLER | _LARGER:
        return None
    parts = [*node.args]
    if isinstance(node.func, ast.Attribute) and len(parts) == 1:
        parts = [node.func.value, *parts]  # `first.min(second)`
    if len(parts) != 2:
        return None
    signs, clipped = set(), 0
    for part in parts:
        sign, value, frame = _followed(source, part, term.frame)
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult):
            return None
        kinds = []
        for each in factors(value):
            of_factor, bare = unsigned(each)
            sign *= of_factor
            kinds.append(_kind(source, bare, frame) if bare is not None else "")
        if "clipped" in kinds:
            clipped += 1
        elif "ratio" not in kinds:
            return None
        signs.add(sign)
    return signs.pop() if clipped == 1 and len(signs) == 1 else None


def _followed(source: Source, node: ast.expr, frame: Frame) -> tuple[int, ast.expr, Frame]:
    """Return the expression behind a name, with its sign."""
    sign, value = unsigned(node)
    assert value is not None
    for _ in range(4):
        if not isinstance(value, ast.Name):
            break
        found = list(origins(source, value, frame))
        if len(found) != 1:
            break
        of_value, inner = unsigned(found[0].node)
        assert inner is not None
        sign, value, frame = sign * of_value * found[0].sign, inner, found[0].frame
    return sign, value, frame


def _kind(source: Source, node: ast.expr, frame: Frame) -> str:
    """Return "ratio" or "clipped" for the factors of a surrogate, else ""."""
    _, value, where = _followed(source, node, frame)
    if isinstance(value, ast.Call) and called(value) in ("clamp", "clip"):
        inner = tensor_of(value)
        return "clipped" if inner is not None and _kind(source, inner, where) == "ratio" else ""
    if called(value) == "exp" or _RATIO.search(title(node)):
        return "ratio"
    return ""


def _is_scored(term: Term) -> bool:
    """Whether a term is minus a log-probability times what an action gained."""
    sign, value = unsigned(term.node)
    if value is None or not isinstance(value, ast.BinOp) or term.sign * sign > 0:
        return False
    names = [title(each) for each in factors(value)]
    is_probability = any(
        called(each) == "log_prob" or re.match(r"^(action_|new_)?log_?probs?$|^logps?$", name)
        for each, name in zip(factors(value), names, strict=True)
    )
    return is_probability and any(map(_ADVANTAGE.search, names))


@reads
def constant_ratio(source: Source) -> Iterator[Pattern]:
    """`torch.exp(log_prob - log_prob)`: the ratio of a probability to itself."""
    for call in source.of(ast.Call):
        inner = tensor_of(call) if called(call) == "exp" else None
        if inner is None:
            continue
        _, difference, frame = _followed(source, inner, Frame(source.scope(call)))
        if not isinstance(difference, ast.BinOp) or not isinstance(difference.op, ast.Sub):
            continue
        sides = [_followed(source, side, frame)[1] for side in (difference.left, difference.right)]
        codes = [ast.unparse(side) for side in (difference.left, difference.right)]
        texts = [ast.unparse(side) for side in sides]
        is_same = texts[0] == texts[1] and not any(f".{each}(" in texts[0] for each in _CONSTANT)
        is_probability = all(called(side) == "log_prob" for side in sides)
        if is_same and (is_probability or (codes[0] == codes[1] and "log" in codes[0])):
            yield source.pattern("constant ratio", difference, codes[0])
