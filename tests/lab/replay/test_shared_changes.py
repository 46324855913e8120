"""The changes of a replay, tried in shares and put together."""

from pathlib import Path

import holter
from holter.diagnosis.facts.replays import replayed
from holter.lab.replay.investigating import whole
from holter.lab.sharing import WHOLE, Share
from holter.lab.writing import Lab
from holter.record import Run
from holter.record.events import ChangeTried
from holter.record.signals import REPLAY_LOSS
from lab.replay.failures import failed, parts, window


def tried(lab: Lab, failure: Path) -> list[str]:
    with lab:
        list(whole(window(failure, parts()), lab))
    return [event.what.name for event in Run.load(lab.path).events_of(ChangeTried)]


def test_shares_make_every_change_once_and_give_the_same_result(tmp_path: Path) -> None:
    failure = failed(tmp_path / "run", parts())
    expected = tried(Lab(tmp_path / "alone"), failure)
    shares = [Share(number, 3) for number in range(3)]
    made = [tried(Lab(tmp_path / f"{s.number}", share=s), failure) for s in shares]
    assert sorted(name for names in made for name in names) == sorted(expected)
    elsewhere = [Run.load(tmp_path / f"{share.number}") for share in shares]
    together = Lab(tmp_path / "together", share=WHOLE, elsewhere=elsewhere)
    assert tried(together, failure) == expected
    alone, joined = (replayed(holter.Run.load(tmp_path / name)) for name in ("alone", "together"))
    assert alone is not None and joined is not None
    assert joined.changes == alone.changes
    assert joined.all_tried and joined.triage == alone.triage
    losses = [Run.load(tmp_path / name)[REPLAY_LOSS] for name in ("alone", "together")]
    assert {*losses[0]} == {*losses[1]}
    for name in losses[0]:
        assert losses[0][name].values.tobytes() == losses[1][name].values.tobytes()


def test_what_others_tried_is_not_tried_again(tmp_path: Path) -> None:
    failure = failed(tmp_path / "run", parts())
    tried(Lab(tmp_path / "alone"), failure)
    seen, lab = (
        window(failure, parts()),
        Lab(tmp_path / "b", elsewhere=[Run.load(tmp_path / "alone")]),
    )
    played = []
    play = seen.play

    def counted(*args, **kwargs):
        played.append(args)
        return play(*args, **kwargs)

    seen.play = counted
    with lab:
        list(whole(seen, lab))
    assert [args for args in played if args] == []  # none under a change
    assert played
