"""One pass of a model over its data in eval mode: losses and predictions, sample by sample."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from holter.lab.batches import cloned, size, take, tensors
from holter.lab.calls import losses_seen
from holter.lab.changes.modes import in_eval_mode
from holter.lab.experiments._evaluation.features import features_of
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.record.events import PassMeasured
from holter.watching.collectors.graphs.terms import handwritten
from holter.watching.collectors.loss_calls import Family, Given, given
from holter.watching.collectors.tallies import PassTally, tally_of

_MOST_PROBABILITIES = 1 << 24  # numbers that are kept for metrics of all samples
_MOST_ALONE = 512  # samples of a loss that is only known for batches: each is computed alone

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Examined:
    """What was read of some samples; NaN where a sample has no single target."""

    losses: Values
    labels: Values
    answers: Values
    confidences: Values
    features: Mapping[str, Values] = field(default_factory=dict)
    probabilities: Values | None = None  # of each class; of yes or no that of yes

    def __len__(self) -> int:
        return len(self.losses)


@dataclass(frozen=True, slots=True)
class EvaluatedPass:
    """All samples of a pass, in the order in which they were served."""

    function: str  # empty where the loss amounts to no torch loss function
    family: Family | None
    samples: Examined
    counts: PassMeasured | None
    batch_losses: list[float]
    is_complete: bool


def evaluate_pass(setup: Setup, batches: Iterable[Batch], *, seconds: float) -> EvaluatedPass:
    """Evaluate batches in eval mode until they end or the time is over."""
    until = time.perf_counter() + seconds
    parts: list[Examined] = []
    losses: list[float] = []
    tally: PassTally | None = None
    call: Given | None = None
    is_complete = True
    with in_eval_mode(setup.model):
        for batch in batches:
            loss, call, inputs = _called(setup, batch)
            losses.append(loss)
            count = size(batch)
            if call is None:
                alone = _MOST_ALONE - sum(map(len, parts))
                parts.append(_alone(setup, batch, min(count, alone)))
                is_complete = alone > count
            else:
                tally = tally or tally_of(call)
                if tally is not None:
                    tally.add(call, None)
                parts.append(_examined(call, count, inputs))
            if time.perf_counter() > until:
                is_complete = False
            if not is_complete:
                break
    if not parts:
        raise InapplicableError("there is no batch to evaluate")
    counts = None
    if tally is not None and call is not None:
        counts = tally.told(call.function, tally.values().float().cpu().numpy())
    return EvaluatedPass(
        call.function if call is not None else "",
        call.family if call is not None else None,
        _joined(parts),
        counts,
        losses,
        is_complete,
    )


def _called(setup: Setup, batch: Batch) -> tuple[float, Given | None, list[Tensor]]:
    """Return the loss of a batch, what its loss function was given, and the model's inputs."""
    inputs: list[Tensor] = []

    def keep(_: Any, args: Any, kwargs: Any) -> None:
        if not inputs:
            inputs.extend(tensors((args, kwargs)))

    hook = setup.entry.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        # With a graph: a loss written by hand is recognised by it.
        with torch.enable_grad(), losses_seen() as calls:
            loss = setup.loss(cloned(batch))
    finally:
        hook.remove()
    value = float(loss.detach().float().mean())
    known = [given(one.function, one.arguments) for one in calls]
    if not calls and loss.numel() == 1 and loss.requires_grad:
        known = [given(one.function, one.arguments) for one in handwritten([loss])]
    call = next((one for one in known if one is not None), None)
    return value, call, [tensor.detach() for tensor in inputs]


def _examined(call: Given, count: int, inputs: list[Tensor]) -> Examined:
    losses = _losses(call)
    kept = torch.ones_like(losses)
    if call.ignored is not None:
        kept = (call.target != call.ignored).to(losses.dtype).expand_as(losses)
    if losses.numel() % count:
        raise InapplicableError(
            f"the loss function is given {losses.numel()} targets for {count} samples"
        )
    rows, weights = losses.reshape(count, -1), kept.reshape(count, -1)
    lengths = weights.sum(1)
    means = (rows * weights).sum(1) / lengths.clamp(min=1)
    features = features_of(inputs, count)
    if call.ignored is not None and rows.shape[1] > 1 and bool((lengths < rows.shape[1]).any()):
        features["length"] = _host(lengths)
    nothing = np.full(count, np.nan)
    if rows.shape[1] != 1:
        return Examined(_host(means), nothing, nothing, nothing, features)
    labels, answers, confidences, probabilities = _answers(call)
    return Examined(_host(means), labels, answers, confidences, features, probabilities)


def _losses(call: Given) -> Tensor:
    """Return the loss of each target."""
    names = {"size_average": None, "reduce": None, "reduction": "none"}
    arguments = {key: value for key, value in call.arguments.items() if value is not None}
    arguments = {key: value for key, value in arguments.items() if key not in names}
    function = getattr(functional, call.function)
    with torch.no_grad():
        losses: Tensor = function(**arguments, reduction="none")
    return losses.float()


def _answers(call: Given) -> tuple[Values, Values, Values, Values | None]:
    """Return label, prediction, confidence and probabilities of samples with one target each."""
    prediction, target = call.prediction.float(), call.target
    if call.family is Family.CLASSES:
        label = target.argmax(call.axis) if call.is_soft else target
        scores = prediction.movedim(call.axis, -1).reshape(label.numel(), -1)
        shares = scores.softmax(-1)
        top, answer = shares.max(-1)
        large = shares.numel() > _MOST_PROBABILITIES
        kept = None if large else _rows(shares)
        return _host(label), _host(answer), _host(top), kept
    wanted = _host(target)
    if call.family is Family.NUMBERS:
        return wanted, _host(prediction), np.full(wanted.shape, np.nan), None
    is_probability = call.function == "binary_cross_entropy"
    share = _host(prediction if is_probability else prediction.sigmoid())
    if call.function == "soft_margin_loss":
        wanted = (wanted + 1) / 2
    return wanted, (share > 0.5).astype(float), np.maximum(share, 1 - share), share[:, None]


def _alone(setup: Setup, batch: Batch, count: int) -> Examined:
    """Return the loss of each sample as a batch of its own."""
    losses = []
    with torch.no_grad():
        for place in range(count):
            one = take(cloned(batch), torch.tensor([place]))
            losses.append(float(setup.loss(one).detach().float().mean()))
    nothing = np.full(count, np.nan)
    return Examined(np.array(losses), nothing, nothing, nothing)


def _joined(parts: list[Examined]) -> Examined:
    names = set.intersection(*(set(part.features) for part in parts))
    shares = [part.probabilities for part in parts if part.probabilities is not None]
    together = None
    if len(shares) == len(parts) and sum(map(np.size, shares)) <= _MOST_PROBABILITIES:
        together = np.concatenate(shares)
    return Examined(
        np.concatenate([part.losses for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.answers for part in parts]),
        np.concatenate([part.confidences for part in parts]),
        {name: np.concatenate([part.features[name] for part in parts]) for name in sorted(names)},
        together,
    )


def _host(tensor: Tensor) -> Values:
    return _rows(tensor).reshape(-1)


def _rows(tensor: Tensor) -> Values:
    found: Values = tensor.detach().double().cpu().numpy()
    return found
