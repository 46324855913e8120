"""Whether a replayed step is the script's own: bit for bit, and each time the same."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from holter.lab.randomness import RandomState
from holter.scripts.recognition.capturing import Proof, leaves_of
from holter.scripts.recognition.contexts import as_in_training
from holter.scripts.recognition.declining import NotRecognisedError, at, declined, first_line
from holter.scripts.recognition.kinds import dense, tensors
from holter.scripts.recognition.replaying import Replay

CLOSE = 1e-3  # of the loss; beyond, a replay is another computation
SAME = 1e-5  # of what one computation may differ from its repetition; GPUs add in any order

Values = dict[str, list[Tensor]]


def compare(replay: Replay, proof: Proof) -> bool:
    """Repeat the step that was seen in full; whether the loss is the same bit for bit.

    Weights and buffers are left as they were in that step.
    """
    assert proof.loss is not None
    with torch.no_grad():
        for parameter, value in proof.parameters:
            parameter.copy_(value)
        for module, name, value in proof.buffers:
            held = vars(module)["_buffers"].get(name)
            if held is not None and held.shape == value.shape:
                held.copy_(value)
    proof.belongings.restore()

    def before(place: int) -> None:
        if place in proof.random:
            proof.random[place].restore()

    with as_in_training(proof.autocast):
        loss, found = _run(replay, replay.batch(proof.row), before)
    if missing := proof.reached - leaves_of(loss):
        raise _refusal(
            replay,
            len(replay.plan.forward) - 1,
            f"depends on {len(missing)} parameters through values computed before the step began",
        )
    if same([proof.loss], [loss]):
        return True
    # A loss may hide much: so the values on the way to it are compared as well.
    for place, values in enumerate(found):
        for name, own in proof.values.items():
            last = _last_writer(replay, name)
            if name in values and last == place and not close(own, values[name]):
                raise _refusal(replay, place, f"gives a different `{name}` when it is run again")
    if not close([proof.loss], [loss]):
        raise _refusal(
            replay,
            len(replay.plan.forward) - 1,
            f"is {float(loss.detach().mean()):.6g} when it is computed again,"
            f" and was {float(proof.loss.mean()):.6g}",
        )
    return False


def require_repeatable(
    replay: Replay, batch: Mapping[str, Any], restore: Callable[[], None]
) -> None:
    """Raise, naming a statement, if two replays from the same state differ, or backward fails."""
    start = RandomState.now()
    runs = []
    for _ in range(2):
        restore()
        start.restore()
        runs.append(_run(replay, batch, lambda _: None))
    _require_backward(replay, runs[-1][0])
    restore()
    (_, first), (_, second) = runs
    for place, (values, again) in enumerate(zip(first, second, strict=True)):
        for name, value in values.items():
            if not close(value, again[name], SAME):
                raise _refusal(
                    replay,
                    place,
                    f"gives a different `{name}` each time it is run from the same state",
                )


def _require_backward(replay: Replay, loss: Tensor) -> None:
    """Some libraries forbid a backward that is not called through them."""
    try:
        if loss.requires_grad:
            torch.autograd.backward(loss.mean())
    except Exception as error:
        last = len(replay.plan.forward) - 1
        why = f"cannot be called separately: {first_line(error)}"
        raise _refusal(replay, last, why) from error


def _run(
    replay: Replay, batch: Mapping[str, Any], before: Callable[[int], None]
) -> tuple[Tensor, list[Values]]:
    """The loss, and the tensors that each statement has written."""
    found: list[Values] = []
    running = 0

    def begin(place: int) -> None:
        nonlocal running
        running = place
        before(place)

    def after(place: int, names: Mapping[str, Any]) -> None:
        found.append(
            {
                name: [tensor.detach().clone() for tensor in tensors(names[name])]
                for name in sorted(replay.plan.forward[place].touched)
                if name in names
            }
        )

    try:
        loss = replay.watched(batch, begin, after)
    except NotRecognisedError:
        raise
    except Exception as error:
        raise _refusal(
            replay, running, f"fails when it is run again: {first_line(error)}"
        ) from error
    return loss, found


def _last_writer(replay: Replay, name: str) -> int | None:
    places = [p for p, each in enumerate(replay.plan.forward) if name in each.touched]
    return places[-1] if places else None


def _refusal(replay: Replay, place: int, why: str) -> NotRecognisedError:
    source = replay.plan.site.source
    line = replay.plan.forward[place].lines[0]
    said = source.text.splitlines()[line - 1]
    return declined(at(source.file, line, said, why))


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    """Whether tensors are the same bit for bit, NaN where NaN is."""
    return len(one) == len(other) and all(
        a.shape == b.shape and a.layout == b.layout and _equal(dense(a), dense(b))
        for a, b in zip(one, other, strict=True)
    )


def _equal(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(
        one.nan_to_num(), other.nan_to_num()
    )


def close(one: list[Tensor], other: list[Tensor], limit: float = CLOSE) -> bool:
    """Whether tensors are the same but for rounding."""
    return len(one) == len(other) and all(
        a.shape == b.shape and _near(dense(a), dense(b), limit)
        for a, b in zip(one, other, strict=True)
    )


def _near(one: Tensor, other: Tensor, limit: float) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, other)
    if one.device.type != "cpu" or one.element_size() < 4:
        limit = max(limit, CLOSE)
    one, other = one.double(), other.double()
    finite = one[one.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(one, other, rtol=limit, atol=scale * limit, equal_nan=True)
