"""Lifts data out of the statements of a forward pass: `data[i : i + 64]` is part of a batch."""

import ast
import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from holter.scripts.recognition.kinds import Namespace, tensors
from holter.scripts.recognition.names import any_touch, reads, root, writes

_PURE = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.Slice,
    ast.Tuple,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)
_OWN_WORLD = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.FunctionDef,
    ast.ClassDef,
    ast.For,
    ast.While,
    ast.If,
    ast.IfExp,
    ast.BoolOp,
    ast.Try,
)  # what is in there may run often, or not at all


@dataclass(frozen=True, eq=False)
class Expression:
    """A piece of a statement that is data."""

    key: str
    name: str
    node: ast.expr
    before: int


@dataclass(frozen=True, eq=False)
class Lifted:
    """Statements with variables in place of the expressions that were lifted out of them."""

    statements: list[ast.stmt]
    expressions: list[Expression]


def lift(
    statements: Sequence[ast.stmt],
    names: Namespace,
    varying: Collection[str],
    *,
    only_varying: bool,
) -> Lifted:
    """Lift all that is a part of a constant; `only_varying` if at a place that varies."""
    bound = {each.name for statement in statements for each in writes(statement)}
    made: list[ast.stmt] = []
    lifter = _Lifter(names, varying, bound, only_varying=only_varying)
    for place, statement in enumerate(statements):
        lifter.place = place
        lifted = lifter.visit(copy.deepcopy(statement))
        assert isinstance(lifted, ast.stmt)
        made.append(lifted)
    return Lifted(made, list(lifter.found.values()))


class _Lifter(ast.NodeTransformer):
    def __init__(
        self,
        names: Namespace,
        varying: Collection[str],
        bound: Collection[str],
        *,
        only_varying: bool,
    ) -> None:
        self._names, self._varying, self._bound = names, varying, bound
        self._only_varying = only_varying
        self.place = 0
        self.found: dict[str, Expression] = {}

    def visit(self, node: ast.AST) -> ast.AST:
        """Leave alone what has variables or conditions of its own."""
        return node if isinstance(node, _OWN_WORLD) else super().visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`data[i]`."""
        return self._lifted(node) or self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`graph.x`."""
        return self._lifted(node) or self.generic_visit(node)

    def _lifted(self, node: ast.Subscript | ast.Attribute) -> ast.AST | None:
        if not isinstance(node.ctx, ast.Load):
            return None
        if not all(isinstance(each, _PURE) for each in ast.walk(node)):
            return None
        first: ast.expr = node
        while isinstance(first, ast.Attribute | ast.Subscript):
            first = first.value
        used = reads(node)
        if not isinstance(first, ast.Name) or any(any_touch(each, self._bound) for each in used):
            return None
        if not {root(each) for each in used} <= set(self._names):
            return None
        if first.id in self._varying and tensors(self._names[first.id]):
            return None  # it is a part of the batch as a whole
        if self._only_varying and not any(any_touch(each, self._varying) for each in used):
            return None
        if isinstance(self._names[first.id], nn.Module) or not self._is_tensor(node):
            return None
        key = ast.unparse(node)
        if key not in self.found:
            name = f"__holter_batch_{len(self.found)}__"
            self.found[key] = Expression(key, name, copy.deepcopy(node), self.place)
        return ast.copy_location(ast.Name(self.found[key].name, ast.Load()), node)

    def _is_tensor(self, node: ast.expr) -> bool:
        try:
            body = ast.fix_missing_locations(ast.Expression(copy.deepcopy(node)))
            value = eval(compile(body, "<batch>", "eval"), dict(self._names))  # noqa: S307
        except Exception:
            return False
        return isinstance(value, Tensor) and not value.requires_grad and value.dim() > 0
