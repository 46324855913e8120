"""From what a loader delivers to the variables of a step, by the script's own statements."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holter.lab.randomness import RandomState
from holter.scripts.recognition.capturing import Ready
from holter.scripts.recognition.kinds import tensors
from holter.scripts.recognition.replaying import Replay
from holter.scripts.recognition.session import Seen
from holter.scripts.recognition.verifying import same

Prepare = Callable[[Any], dict[str, Any]]


def preparation(seen: Sequence[Seen], replays: Sequence[Replay]) -> Prepare | None:
    """How a batch of a loader becomes that of a phase: proven on one, for all its losses.

    Of None, it makes what the script draws by itself. None if it cannot be proven.
    """
    random = RandomState.now()
    parts = [_part(each, replay) for each, replay in zip(seen, replays, strict=True)]
    random.restore()
    if any(each is None for each in parts):
        return None

    def prepare(delivered: object) -> dict[str, Any]:
        batch: dict[str, Any] = {}
        for part in parts:
            assert part is not None
            batch.update(part(delivered))
        return batch

    return prepare


def _part(seen: Seen, replay: Replay) -> Prepare | None:
    assert seen.capture.proof is not None
    if seen.capture.carries:
        return None
    own = replay.batch(seen.capture.proof.row)
    for ready, with_data in ((seen.capture.entry, True), (seen.capture.ready, False)):
        if ready is not None and ready.match.is_whole:
            made = _preparing(replay, ready, with_data=with_data)
            if _gives(own, made, ready):
                return made
    return None


def _preparing(replay: Replay, ready: Ready, *, with_data: bool) -> Prepare:
    def prepare(delivered: object) -> dict[str, Any]:
        entering = {} if delivered is None else ready.match.bind(delivered)
        return replay.prepared(entering, with_data=with_data)

    return prepare


def _gives(own: Mapping[str, Any], made: Prepare, ready: Ready) -> bool:
    ready.random.restore()
    try:
        again = made(ready.delivered)
    except Exception:
        return False
    return all(same(tensors(again[key]), tensors(value)) for key, value in own.items())
