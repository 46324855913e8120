"""Bootstrapped targets: at the wrong ends, of the wrong state, or of another shape."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.agents.value_shapes import is_loss
from holter.scripts.reading.source.expressions import argument, tensor_of
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

ENDS = re.compile(
    r"^((b|mb|batch|episode|env|next|is)_)?(d|dones?|terminals?|terminated|terminateds|ended|finals?"
    r"|dones?_mask|is_terminal|game_over)(_(b|batch|t|buf|tensor|flags?|bool))?$", re.I
)  # fmt: skip
REWARD = re.compile(
    r"(^|_)(r|rew|rews|reward|rewards|delta|deltas|td|td_error)(_(b|t|buf|batch)|s?$)", re.I
)
DISCOUNT = re.compile(r"(^|_)(gamma|discount|discount_factor)(_|$)", re.I)
NEXT = re.compile(
    r"(^|_)(next|new|nxt|succ|prime)(_|$)|^next|next$"
    r"|^(s2|s_|ns|sp|obs2|o2|s_prime|state_|states_|obs_|s1)$",
    re.I,
)
CURRENT = re.compile(
    r"^((b|mb|batch|cur|current)_)?(s|o|obs|ob|obses|states?|observations?)(_(b|t|batch|tensor))?$",
    re.I,
)
_PLAIN = {
    *("float", "to", "int", "long", "bool", "double", "cpu", "numpy", "unsqueeze", "squeeze"),
    *("view", "reshape", "flatten", "detach", "clone", "type", "cuda", "as_tensor", "tensor"),
    *("item", "FloatTensor", "Tensor", "from_numpy", "astype", "contiguous", "expand_as"),
}
_GREEDY = {"argmax", "max"}
_ACTIONS = re.compile(r"^(b_|batch_)?(a|act|acts|actions?)(_b|_batch)?$")
_DEEPEST = 8


def title(node: ast.AST) -> str:
    """Return the last name of a value, past conversions and indices: `done` of `b["done"]`."""
    while True:
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                return node.slice.value
            node = node.value
        elif isinstance(node, ast.Call) and called(node) in _PLAIN:
            inner = tensor_of(node)
            if inner is None:
                return ""
            node = inner
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "data"):
            node = node.value
        else:
            return dotted(node).rpartition(".")[2]


def factors(node: ast.expr) -> list[ast.expr]:
    """Return the factors of a product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*factors(node.left), *factors(node.right)]
    return [node]


def bootstraps(source: Source) -> Iterator[tuple[ast.BinOp, list[ast.expr]]]:
    """Yield each sum such as `r + gamma * v`, and the factors of its second part."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Add):
            continue
        for reward, rest in ((node.left, node.right), (node.right, node.left)):
            product = factors(rest)
            if len(product) > 1 and _is_reward(reward):
                discounts = [each for each in product if DISCOUNT.search(title(each))]
                if discounts:
                    yield node, [each for each in product if each not in discounts]


def _is_reward(node: ast.expr) -> bool:
    """Whether a summand is a reward, or begins with one: `r + gamma * v - value`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return _is_reward(node.left)
    return bool(REWARD.search(title(node)))


@reads
def at_ends(source: Source) -> Iterator[Pattern]:
    """`r + gamma * done * next_q`: only what has ended goes on earning."""
    found = []
    for node, product in bootstraps(source):
        found += [(node, title(each)) for each in product if _is_end(source, each)]
    for call in source.of(ast.Call):  # `torch.where(done, r + gamma * q, r)`
        if called(call) == "where" and len(call.args) == 3 and _is_end(source, call.args[0]):
            then, other = call.args[1:]
            sums = {node for node, _ in bootstraps(source)}
            if then in sums and other not in sums and _is_reward(other):
                found.append((call, title(call.args[0])))  # type: ignore[arg-type]
    found += [(node, name) for node, name in _branches(source)]  # type: ignore[misc]
    if found and not _is_inverted_elsewhere(source):
        for node, name in found:
            yield source.pattern("bootstrap at ends", node, name)


def _is_end(source: Source, node: ast.expr) -> bool:
    """Whether a factor is 1 at the end of an episode, as its name says."""
    name = title(node)
    if not ENDS.match(name) or (name == "d" and _is_scaled(source)):
        return False
    return not any(
        isinstance(part, ast.UnaryOp | ast.BinOp | ast.Compare)
        for part in source.walk(node)
        if not _is_in_slice(source, part, node)
    )


def _is_scaled(source: Source) -> bool:
    return not any(title(node) in ("done", "dones", "terminated") for node in source.of(ast.Name))


def _is_in_slice(source: Source, part: ast.AST, root: ast.AST) -> bool:
    child = part
    while child is not root:
        above = source.parent(child)
        if above is None:
            return False
        if isinstance(above, ast.Subscript) and above.slice is child:
            return True
        child = above
    return False


def _branches(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Yield sums in a branch for ends: `if done: y = r + gamma * q` and `else: y = r`."""
    sums = {node for node, _ in bootstraps(source)}
    found: list[tuple[ast.expr, ast.expr, ast.expr]] = [
        (node.test, node.body, node.orelse) for node in source.of(ast.IfExp)
    ]
    for node in source.of(ast.If):
        if len(node.body) == len(node.orelse) == 1:
            first, second = node.body[0], node.orelse[0]
            if isinstance(first, ast.Assign) and isinstance(second, ast.Assign):
                found.append((node.test, first.value, second.value))
    for test, then, other in found:
        is_end = ENDS.match(title(test)) and then in sums
        if is_end and _is_reward(other) and other not in sums:
            yield then, title(test)


def _is_inverted_elsewhere(source: Source) -> bool:
    """Whether the file keeps the opposite of an end, so that a name may mean that."""
    for node in source.walk(source.tree):
        inner: ast.expr | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            inner = node.right if isinstance(node.left, ast.Constant) else None
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
            inner = node.operand
        elif called(node) == "logical_not" and isinstance(node, ast.Call):
            inner = tensor_of(node)
        elif isinstance(node, ast.IfExp):
            inner = node.test
        elif isinstance(node, ast.Compare):
            inner = node.left
        if inner is None or not any(
            ENDS.match(title(each)) for each in ast.walk(inner)
            if isinstance(each, ast.Name | ast.Attribute | ast.Subscript)
        ):  # fmt: skip
            continue
        above = source.parent(node)
        while above is not None and (called(above) in _PLAIN or isinstance(above, ast.Attribute)):
            above = source.parent(above)
        is_factor = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult)
        is_loop = isinstance(above, ast.While | ast.If | ast.BoolOp | ast.IfExp)
        if not is_factor and not is_loop:
            return True
    return False


@reads
def wrong_state(source: Source) -> Iterator[Pattern]:
    """A target whose action or value is that of the state before the step."""
    for call in source.of(ast.Call):
        if called(call) != "gather":
            continue
        frame = Frame(source.scope(call))
        values, index = tensor_of(call), argument(call, 1, "index")
        if values is None or index is None:
            continue
        of_values, of_index = _state(source, values, frame), _greedy_state(source, index, frame)
        if NEXT.search(of_values) and _is_current(source, call, of_index):
            yield source.pattern("action of this state", call, of_index)
        is_stored = _ACTIONS.match(title(index))
        if NEXT.search(of_values) and is_stored and _is_prediction(source, call):
            yield source.pattern("value of the next state", call, of_values)
    for node, product in bootstraps(source):
        frame = Frame(source.scope(node))
        for each in product:
            state = _state(source, each, frame)
            if state and _is_current(source, node, state) and not _is_replaced(source, node, state):
                yield source.pattern("value of this state", node, state)


def _is_prediction(source: Source, call: ast.Call) -> bool:
    """Whether a value is assigned to what a loss compares, not put into a target."""
    statement = next((each for each in source.above(call) if isinstance(each, ast.stmt)), None)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    if re.search(r"next|target|boot", name, re.I):
        return False
    return any(
        isinstance(each, ast.Call) and is_loss(source, each)
        and name in {title(argument_) for argument_ in each.args[:1]}
        for each in source.of(ast.Call) if source.scope(each) is source.scope(call)
    )  # fmt: skip


def _is_current(source: Source, node: ast.AST, state: str) -> bool:
    """Whether a name is that of the state before a step, and the scope has the next one too."""
    if not CURRENT.match(state) or NEXT.search(state):
        return False
    scope = source.scope(node)
    names = {title(each) for each in source.walk(scope) if isinstance(each, ast.Name | ast.arg)}
    names |= {each.arg for each in source.walk(scope) if isinstance(each, ast.arg)}
    return any(
        NEXT.search(name)
        and re.search(r"s|o", name)
        and not ENDS.match(name)
        and re.search(r"state|obs|^s_|^ns|^s2|^sp|^s1|^o2", name, re.I)
        for name in names
    )


def _is_replaced(source: Source, node: ast.AST, state: str) -> bool:
    """Whether the state has become the next one before a statement: `state = next_state`."""
    given = source.bindings(source.scope(node), state)
    return any(NEXT.search(title(each.value)) or "step" in ast.unparse(each.value)
               for each in given if each.value is not None)  # fmt: skip


def _state(source: Source, node: ast.expr, frame: Frame, depth: int = 0) -> str:
    """Return the name of the state whose values a network gives, or ""."""
    if depth > _DEEPEST:
        return ""
    if isinstance(node, ast.Name):
        values = list(origins(source, node, frame))
        found = {_state(source, value, where, depth + 1) for value, where, _ in values}
        return found.pop() if len(found) == 1 else ""
    if isinstance(node, ast.Subscript):
        return _state(source, node.value, frame, depth + 1)
    if isinstance(node, ast.Attribute) and node.attr in ("values", "data"):
        return _state(source, node.value, frame, depth + 1)
    if not isinstance(node, ast.Call):
        return ""
    if called(node) in (_PLAIN | _GREEDY | {"gather", "amax", "min"}) and (
        isinstance(node.func, ast.Attribute) or called(node) in ("min",)
    ):
        inner = tensor_of(node)
        return _state(source, inner, frame, depth + 1) if inner is not None else ""
    if dotted(node.func) and node.args:
        first = title(node.args[0])
        return first if CURRENT.match(first) or NEXT.search(first) else ""
    return ""


def _greedy_state(source: Source, node: ast.expr, frame: Frame, depth: int = 0) -> str:
    """Return the name of the state whose best action an index is, or ""."""
    if depth > _DEEPEST:
        return ""
    if isinstance(node, ast.Name):
        values = list(origins(source, node, frame))
        found = {_greedy_state(source, value, where, depth + 1) for value, where, _ in values}
        return found.pop() if len(found) == 1 else ""
    if isinstance(node, ast.Subscript):
        return _greedy_state(source, node.value, frame, depth + 1)
    if isinstance(node, ast.Attribute) and node.attr == "indices":
        return _greedy_state(source, node.value, frame, depth + 1)
    if isinstance(node, ast.Call) and called(node) in _GREEDY:
        inner = tensor_of(node)
        return _state(source, inner, frame) if inner is not None else ""
    if isinstance(node, ast.Call) and called(node) in _PLAIN:
        inner = tensor_of(node)
        return _greedy_state(source, inner, frame, depth + 1) if inner is not None else ""
    return ""
