"""Binary cross-entropies written by hand: logarithms of a probability and of its complement."""

from typing import NamedTuple

from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place, above_floor, operand_of_kind
from holter.watching.collectors.graphs.pattern import Pattern

_NEAR_ONE = 1e-3  # the sum of two labels


class _Half(NamedTuple):
    """The labels of one of the two classes, and the probability whose logarithm they choose."""

    labels: Tensor
    probability: Tensor
    source: Place | None  # that the probability comes from


def log_loss(place: Place) -> Pattern | None:
    """`labels * log(p) + (1 - labels) * log(1 - p)`, in either order and with either sign."""
    products = [operand for operand in place.operands if operand is not None]
    if len(products) != 2 or any(product.kind != "Mul" for product in products):
        return None
    halves: dict[bool, _Half] = {}
    for product in products:
        log, labels = product.dynamic, product.constant()
        argument = None if log is None or log.kind != "Log" else log.saved("self")
        if log is None or labels is None or argument is None:
            return None
        source = above_floor(log)
        halves[_is_complement(source)] = _Half(labels, argument, source)
    if len(halves) != 2:
        return None
    yes, no = halves[False], halves[True]
    p, q = yes.probability, no.probability
    if p.shape != q.shape or yes.labels.shape != no.labels.shape or yes.labels.device != p.device:
        return None
    labels, others = yes.labels.to(p.dtype).abs(), no.labels.to(p.dtype).abs()
    if labels.is_cpu and bool(((labels + others - 1).abs() > _NEAR_ONE).any()):
        return None  # they are weights
    elements = -(labels * p.log() + others * q.log())
    given = _before_last_sigmoid(yes.source)
    if given is not None and given.numel() == p.numel():
        given = given.reshape(p.shape)
        return Pattern("binary_cross_entropy_with_logits", given, labels, elements)
    return Pattern("binary_cross_entropy", p, labels, elements)


def _is_complement(place: Place | None) -> bool:
    """Whether a place computes `1 - p`."""
    return place is not None and (
        place.kind == "Rsub" or (place.kind == "Sub" and place.operand(0) is None)
    )


def _before_last_sigmoid(source: Place | None) -> Tensor | None:
    """The probabilities that a second sigmoid is given as if they were logits, or None."""
    sigmoid = None if source is None else source.unarranged()
    if sigmoid is None or sigmoid.kind != "Sigmoid":
        return None
    first = operand_of_kind(sigmoid, "Sigmoid")
    return None if first is None else first.saved("result")
