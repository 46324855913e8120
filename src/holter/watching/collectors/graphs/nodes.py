"""Nodes of an autograd graph: kind, shapes, and the tensors that they have saved.

Reading a saved tensor runs the script's unpack hooks, if it has any: read those of the loss only,
never those inside a model, which may be checkpointed.
"""

from typing import Any, NamedTuple

from torch import Tensor

from holter.watching.collectors.batches import ANY
from holter.watching.collectors.outputs import readable

_ARRANGES = frozenset(("Squeeze", "Unsqueeze", "View", "UnsafeView", "Reshape", "ReshapeAlias"))
_FLOORS = frozenset(("Add", "Clamp", "ClampMin", "Maximum"))
_COPIES = frozenset(("Clone", "ToCopy", "Alias"))
_WRAPPED = 1 << 64  # negative numbers are saved as unsigned ones


class Place(NamedTuple):
    """One output of a node: what an edge of the graph points at."""

    node: Any
    output: int = 0

    @property
    def kind(self) -> str:
        """The operation: `Mul` for MulBackward0."""
        return type(self.node).__name__.rstrip("0123456789").removesuffix("Backward")

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of what was computed here, or None where the graph does not tell."""
        try:
            return tuple(self.node._input_metadata[self.output].shape)  # noqa: SLF001
        except (AttributeError, IndexError):  # a function written in Python may have none
            return None

    @property
    def operands(self) -> list["Place | None"]:
        """What it was computed from; None for constants."""
        return [
            None if node is None else Place(node, output)
            for node, output in self.node.next_functions
        ]

    def operand(self, number: int) -> "Place | None":
        """One of what it was computed from; None for a constant, which may have no edge."""
        edges = self.node.next_functions
        if number >= len(edges) or edges[number][0] is None:
            return None
        return Place(*edges[number])

    @property
    def dynamic(self) -> "Place | None":
        """The only operand that is no constant, or None where there are none or several."""
        places = [place for place in self.operands if place is not None]
        return places[0] if len(places) == 1 else None

    @property
    def is_arranged(self) -> bool:
        """Whether it has the elements of its operand, in their order."""
        return self.kind in _ARRANGES or self.kind in _COPIES

    def saved(self, name: str) -> Tensor | None:
        """A tensor that the node has saved, without its graph; None if it cannot be read."""
        value = self.argument(name)
        return readable(value, kinds=ANY) if isinstance(value, Tensor) else None

    def argument(self, name: str) -> Any:
        """What the node has saved under a name, or None."""
        try:
            return getattr(self.node, f"_saved_{name}", None)
        except RuntimeError:  # it was changed in place since, or is freed
            return None

    def axis(self, name: str = "dim") -> int | None:
        """A saved axis, counted from the first one; None where there is not exactly one."""
        value, shape = self.argument(name), self.shape
        if isinstance(value, tuple):
            value = value[0] if len(value) == 1 else None
        if not isinstance(value, int) or not shape:
            return None
        return signed(value) % len(shape)

    def constant(self) -> Tensor | None:
        """The operand of a product or division that is no part of the graph."""
        for name in ("other", "self"):
            value = self.argument(name)
            if isinstance(value, Tensor) and not value.requires_grad:
                return readable(value, kinds=ANY)
        return None

    def unarranged(self) -> "Place":
        """The place whose elements these are, behind operations that only arrange them."""
        place = self
        while place.is_arranged and (operand := place.dynamic) is not None:
            place = operand
        return place


def signed(value: int) -> int:
    """A saved number with its sign."""
    return value - _WRAPPED if value >= _WRAPPED // 2 else value


def place_of(root: Tensor) -> Place | None:
    """Where a tensor was computed, or None for a leaf."""
    return None if root.grad_fn is None else Place(root.grad_fn, root.output_nr)


def above_floor(log: Place) -> Place | None:
    """What a logarithm is taken of, without what keeps it away from zero."""
    below = log.dynamic
    while below is not None and below.kind in _FLOORS:
        below = below.dynamic
    return below


def operand_of_kind(place: Place, kind: str) -> Place | None:
    """The operation whose result another one is applied to, if it is of a kind."""
    below = place.dynamic
    below = None if below is None else below.unarranged()
    return below if below is not None and below.kind == kind else None
