"""The changes of a replay, tried in shares and put together."""

from pathlib import Path
from typing import Any

from holter.diagnosis.facts.replays import replayed
from holter.lab.replay.investigating import whole
from holter.lab.sharing import Share
from holter.lab.writing import Lab
from holter.record import Run
from holter.record.events import ChangeTried
from holter.record.signals import REPLAY_LOSS
from lab.replay.failures import failed, parts, window


def tried(lab: Lab, failure: Path) -> tuple[list[str], int]:
    """Return the changes that are recorded, and how many passes were made under a change."""
    seen, changed = window(failure, parts()), 0
    play = seen.play

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal changed
        changed += bool(args)
        return play(*args, **options)

    seen.play = counted  # type: ignore[method-assign]
    with lab:
        list(whole(seen, lab))
    return [event.what.name for event in Run.load(lab.path).events_of(ChangeTried)], changed


def test_shares_make_every_change_once_and_give_the_same_result(tmp_path: Path) -> None:
    failure = failed(tmp_path / "run", parts(), epochs=1)
    expected, passes = tried(Lab(tmp_path / "alone"), failure)
    assert passes
    shares = [Share(number, 2) for number in range(2)]
    made = [tried(Lab(tmp_path / f"{s.number}", share=s), failure) for s in shares]
    assert sorted(name for names, _ in made for name in names) == sorted(expected)
    assert sum(count for _, count in made) == passes
    elsewhere = [Run.load(tmp_path / f"{share.number}") for share in shares]
    assert tried(Lab(tmp_path / "together", elsewhere=elsewhere), failure) == (expected, 0)
    alone, joined = (replayed(Run.load(tmp_path / name)) for name in ("alone", "together"))
    assert alone is not None and joined is not None
    assert joined.changes == alone.changes
    assert joined.all_tried and joined.triage == alone.triage
    losses = [Run.load(tmp_path / name)[REPLAY_LOSS] for name in ("alone", "together")]
    assert {*losses[0]} == {*losses[1]}
    for name in losses[0]:
        assert losses[0][name].values.tobytes() == losses[1][name].values.tobytes()
