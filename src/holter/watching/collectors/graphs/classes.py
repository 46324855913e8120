"""Cross-entropies written by hand: log-probabilities, of which the labels pick some."""

import torch
from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place, above_floor, operand_of_kind
from holter.watching.collectors.graphs.pattern import INDICES, Pattern

_NEAR_ONE = 1e-3  # the sum of probabilities
_TINY = 1e-38  # a probability whose logarithm is a number


def gathered(place: Place) -> Pattern | None:
    """`log_probabilities.gather(1, labels)`."""
    source = place.operand(0)
    return None if source is None else _gathered(place, source, _log_probabilities(source))


def indexed(place: Place) -> Pattern | None:
    """`log_probabilities[range(len(labels)), labels]`."""
    source = place.operand(0)
    return None if source is None else _indexed(place, source, _log_probabilities(source))


def logged(place: Place) -> Pattern | None:
    """`probabilities.gather(1, labels).log()`, or the same with an index."""
    picked = above_floor(place)
    picked = None if picked is None else picked.unarranged()
    source = None if picked is None else picked.operand(0)
    if picked is None or source is None or source.kind != "Softmax":
        return None
    read = {"Gather": _gathered, "Index": _indexed}.get(picked.kind)
    probabilities = source.saved("result")
    if read is None or probabilities is None:
        return None
    return read(picked, source, probabilities.clamp_min(_TINY).log())


def _gathered(place: Place, source: Place, logs: Tensor | None) -> Pattern | None:
    axis, labels = place.axis(), place.saved("index")
    if logs is None or axis is None or labels is None or labels.shape[axis] != 1:
        return None
    if logs.dim() != labels.dim() or logs.dim() < 2:
        return None
    if any(labels.shape[n] != size for n, size in enumerate(logs.shape) if n != axis):
        return None
    return _classes(source, logs.movedim(axis, -1), labels.squeeze(axis))


def _indexed(place: Place, source: Place, logs: Tensor | None) -> Pattern | None:
    indices = place.argument("indices")
    if logs is None or logs.dim() != 2 or not isinstance(indices, tuple) or len(indices) != 2:
        return None
    rows, labels = indices
    if not (isinstance(rows, Tensor) and isinstance(labels, Tensor)):
        return None
    if labels.dtype not in INDICES[:2] or not rows.shape == labels.shape == logs.shape[:1]:
        return None
    return _classes(source, logs, labels.detach())


def _classes(source: Place, logs: Tensor, labels: Tensor) -> Pattern:
    """The log-probabilities of some labels; with a softmax before theirs, its probabilities."""
    rows, labels = logs.reshape(-1, logs.shape[-1]), labels.reshape(-1)
    elements = -rows.gather(1, labels.long().clamp(0, rows.shape[1] - 1)[:, None])[:, 0]
    softmax = source if source.kind in ("LogSoftmax", "Softmax") else _softmax(source)
    first = None if softmax is None else operand_of_kind(softmax, "Softmax")
    if first is not None and (given := first.saved("result")) is not None:
        axis = first.axis()
        if given.numel() == rows.numel() and axis is not None:
            given = given.movedim(axis, -1).reshape(rows.shape)
            return Pattern("cross_entropy", given, labels, elements)
    return Pattern("nll_loss", rows, labels, elements)


def labelled_product(place: Place) -> Pattern | None:
    """`labels * log_probabilities`, with labels as one-hot vectors or distributions."""
    source, labels = place.dynamic, place.constant()
    if source is None or labels is None or labels.shape != source.shape or labels.dim() < 2:
        return None
    logs, axis = _log_probabilities(source), _class_axis(source)
    if logs is None or axis is None or labels.shape != logs.shape:
        return None
    rows = labels.movedim(axis, -1).reshape(-1, labels.shape[axis])
    if rows.is_floating_point():
        # Rewards and weights are no distributions; on a device that would have to be waited for.
        if not rows.is_cpu or bool(((rows.sum(1) - 1).abs() > _NEAR_ONE).any()):
            return None
        if bool((rows.amax(1) < 1).any()):
            logs = logs.movedim(axis, -1).reshape(rows.shape)
            return Pattern("nll_loss", logs, rows, -(rows * logs).sum(1))
    return _classes(source, logs.movedim(axis, -1), rows.to(torch.float32).argmax(1))


def _log_probabilities(place: Place) -> Tensor | None:
    """The log-probabilities that are computed at a place, or None if they are something else."""
    if place.kind == "LogSoftmax":
        return place.saved("result")
    if place.kind == "Log":
        probabilities = place.saved("self")
        return None if probabilities is None or _softmax(place) is None else probabilities.log()
    if place.kind == "Sub":  # logits minus their logsumexp
        normaliser = place.operand(1)
        if normaliser is None or normaliser.kind != "Logsumexp":
            return None
        logits, total = normaliser.saved("self"), normaliser.saved("result")
        if logits is None or total is None or logits.dim() != total.dim():
            return None
        return logits - total
    return None


def _class_axis(place: Place) -> int | None:
    """The axis that log-probabilities are normalised over."""
    if place.kind == "LogSoftmax":
        return place.axis()
    if place.kind == "Log":
        softmax = _softmax(place)
        return None if softmax is None else softmax.axis()
    normaliser = place.operand(1)
    return None if normaliser is None else normaliser.axis()


def _softmax(log: Place) -> Place | None:
    """The softmax that a logarithm is taken of, behind a floor or not."""
    below = above_floor(log)
    return below if below is not None and below.kind == "Softmax" else None
