"""Whether a change cures a failure, from what its trial measured."""

from dataclasses import replace

import numpy as np
import pytest

from holter import Run, check
from holter.diagnosis.facts.replayed_changes import (
    ChangeFamily,
    CureOutcome,
    Normal,
    concluded,
    family_of,
    judged,
)
from holter.diagnosis.facts.replays import advised_replay, fails, replayed
from holter.record import Event
from holter.record.band import Band
from holter.record.births import Birth
from holter.record.events import (
    BirthFound,
    CaptureWritten,
    ChangesTried,
    ChangeTried,
    Occurrence,
    Reproduced,
    TriageMade,
    WindowMeasure,
)
from holter.record.signals import LOSS
from holter.reports import text
from synthetic import run_of

BAND = Band(1.0, 0.1)
NORMAL = Normal(BAND)
NAN = WindowMeasure(nonfinite_at=59)
SPIKE = WindowMeasure(late_loss=9.0)
BIRTH = Birth(
    operation="log",
    kind="log of zero",
    phase="forward",
    where="train.py:8",
    line="loss = -p.log().mean()",
    module="",
    node="",
    operands=(),
    count=1,
    of=64,
    samples=(3,),
    positions=(),
    passed_on=0,
    passed_to=(),
    headroom=None,
    says="log of 0",
)


@pytest.mark.parametrize(
    ("trial", "unchanged", "outcome"),
    [
        (WindowMeasure(late_loss=1.1), NAN, CureOutcome.CURES),
        (WindowMeasure(late_loss=1.79), NAN, CureOutcome.CURES),
        (WindowMeasure(late_loss=1.81), NAN, CureOutcome.DOES_NOT),
        (NAN, NAN, CureOutcome.DOES_NOT),
        (WindowMeasure(nonfinite_at=58), NAN, CureOutcome.WORSENS),
        (WindowMeasure(error="RuntimeError: no"), NAN, CureOutcome.DOES_NOT),
        (WindowMeasure(), NAN, CureOutcome.DOES_NOT),
        (WindowMeasure(late_loss=1.1), SPIKE, CureOutcome.CURES),
        (SPIKE, SPIKE, CureOutcome.DOES_NOT),
    ],
)
def test_the_loss_has_to_be_normal_again(
    trial: WindowMeasure, unchanged: WindowMeasure, outcome: CureOutcome
) -> None:
    assert concluded(trial, unchanged, NORMAL)[0] is outcome


def test_in_a_wide_band_half_of_the_rise_has_to_be_gone() -> None:
    wide, unchanged = Normal(Band(1.0, 1.0)), WindowMeasure(late_loss=5.0)
    assert concluded(WindowMeasure(late_loss=2.9), unchanged, wide)[0] is CureOutcome.CURES
    assert concluded(WindowMeasure(late_loss=3.1), unchanged, wide)[0] is CureOutcome.DOES_NOT


def test_a_model_that_casts_by_itself_has_no_float32() -> None:
    broken = WindowMeasure(error="RuntimeError: expected Half")
    assert judged("float32", broken, NAN, NORMAL).outcome is CureOutcome.NOT_APPLICABLE
    assert judged("clip to 1", broken, NAN, NORMAL).outcome is CureOutcome.DOES_NOT


def test_families() -> None:
    assert family_of("learning rate x 0.333") is ChangeFamily.RATE
    assert family_of("learning rate before it rose") is ChangeFamily.RATE
    assert family_of("clip to 1 and float32") is ChangeFamily.PAIR


def minimal(
    *cures: str,
    data: bool = False,
    bad: int = 1,
    kind: str = "",
    reaches: str = "",
    outlies: bool | None = None,
    phase: str = "forward",
) -> str | None:
    reproduced = Reproduced("bit for bit", "", 59, 59, 33, "nonfinite", bad=bad)
    occurrences = [
        replace(reproduced, normal_loss=1, normal_spread=0.1),
        *(
            [BirthFound(replace(BIRTH, kind=kind, reaches=reaches, phase=phase), 59)]
            if kind
            else []
        ),
        ChangeTried("math attention", measure=NAN),
        *(ChangeTried(name, measure=WindowMeasure(late_loss=1.0)) for name in cures),
        ChangesTried(),
        TriageMade(data, not data, outlies=outlies),
    ]
    found = replayed(Run.of({}, events=[Event(0, 0.0, what) for what in occurrences]))
    assert found is not None
    assert found.all_tried
    return None if found.minimal_cure is None else found.minimal_cure.name


def test_the_minimal_cure_is_the_smallest_intervention() -> None:
    rates = ("learning rate x 0.1", "learning rate x 0.333")
    assert minimal() is None
    assert minimal(*rates) == "learning rate x 0.333"
    assert minimal("second moment reset", rates[0]) == "second moment reset"
    assert minimal(*rates, "float32") == "float32"
    assert minimal(*rates, "step skipped") == "learning rate x 0.333"
    assert minimal(*rates, "step skipped", "previous batch", data=True) == "step skipped"
    assert minimal("clip to 1 and float32") == "clip to 1 and float32"
    assert minimal(*rates, "clip to 1", "guarded log", "step skipped") == "guarded log"
    assert minimal("guarded log", "step skipped", data=True) == "step skipped"
    assert minimal("guarded log", "step skipped", data=True, bad=2) == "guarded log"
    assert minimal(*rates, "step skipped", data=True, bad=2) == "step skipped"
    assert minimal(*rates, "clip to 1", kind="bad input") is None
    assert minimal(*rates, "step skipped", kind="bad input") == "step skipped"
    for kind, cure in (("log of zero", "guarded log"), ("exp overflow", "step skipped")):
        assert minimal("guarded log", "step skipped", data=True, kind=kind) == cure
    assert minimal("guarded log", "float32") == "float32"


def test_a_number_that_is_held_comes_before_another_batch_and_after_a_guard() -> None:
    held = "held temperature=0.2"
    assert minimal(held, "previous batch", "learning rate x 0.333", data=True) == held
    assert minimal(held, "guarded log", data=True) == "guarded log"


def test_a_counter_comes_after_whatever_acts_on_steps() -> None:
    counter, moved = "counter held update=16", "held spread=8.8"
    assert minimal(counter, "clip to 1") == "clip to 1"
    assert minimal(counter, moved) == moved
    assert minimal("counter not set back t=100") == "counter not set back t=100"


def test_an_accumulation_is_divided_before_its_number_is_held() -> None:
    divided = "gradients divided by the backward passes of a step"
    assert minimal("held accumulate=2", divided, "clip to 1") == divided


def test_a_number_that_moves_gradients_out_of_range_comes_before_float32() -> None:
    held = "held scale.value=65536"
    assert minimal(held, "float32", kind="half range", phase="backward") == held
    assert minimal(held, "float32", kind="half range") == "float32"
    assert minimal("float32", kind="half range", phase="backward") == "float32"


@pytest.mark.parametrize(("last", "returned"), [(1.0, True), (9.0, False), (np.nan, False)])
def test_a_rise_from_which_the_loss_came_back_is_no_failure(last: float, returned: bool) -> None:
    losses = np.concatenate([np.ones(59), np.full(40, 9.0), np.full(60, last)])
    about = Reproduced("bit for bit", "", 59, 59, 33, "spike", normal_loss=1, normal_spread=0.1)
    found = replayed(run_of({LOSS: {"": losses}}, events=[Event(0, 0.0, about)]))
    assert found is not None
    assert found.returned is returned
    assert fails(found) is not returned


def test_batches_with_ordinary_values_that_fail_in_a_row_are_not_to_blame() -> None:
    others = ("previous batch", "another batch")
    assert minimal(*others, data=True, bad=4, outlies=False) is None
    assert minimal(*others, "clip to 1", data=True, bad=4, outlies=False) == "clip to 1"
    assert minimal(*others, data=True, bad=4, outlies=True) == "previous batch"
    assert minimal(*others, data=True, outlies=False) == "previous batch"
    guard = "guarded exp"
    assert minimal(*others, guard, data=True, kind="exp overflow", outlies=False) == guard
    assert minimal(*others, guard, data=True, kind="exp overflow", outlies=True) == others[0]


def test_smaller_steps_are_no_cure_of_what_the_script_made_by_itself() -> None:
    slower = "learning rate x 0.1"
    assert minimal(slower, kind="log of zero", reaches="input") is None
    held = "learning rate before it rose"
    assert minimal(held, kind="outside domain", reaches="setting") == held


def test_a_guard_cures_if_the_loss_is_finite_and_in_proportion() -> None:
    assert judged("guarded sqrt", WindowMeasure(late_loss=9.0), NAN, NORMAL).outcome == "cures"
    assert judged("guarded sqrt", WindowMeasure(late_loss=99.0), NAN, NORMAL).outcome == "does not"
    assert judged("clip to 1", WindowMeasure(late_loss=9.0), NAN, NORMAL).outcome == "does not"
    began = replace(NORMAL, highest=12.0)  # the loss was as high in the beginning
    assert judged("guarded sqrt", WindowMeasure(late_loss=99.0), NAN, began).outcome == "cures"
    assert judged("guarded sqrt", WindowMeasure(late_loss=8.9), SPIKE, NORMAL).outcome == "does not"


@pytest.mark.parametrize(
    ("occurrences", "is_advised"),
    [
        ((CaptureWritten("nonfinite", 59, "captures/step-59"),), True),
        ((CaptureWritten("spike", 59, "captures/step-59"),), True),
        ((CaptureWritten("asked", 59, "captures/step-59"),), False),
        ((), False),
        (
            (
                CaptureWritten("nonfinite", 59, "captures/step-59"),
                Reproduced("bit for bit", "", 59, 59, 33, "nonfinite"),
            ),
            False,
        ),
    ],
)
def test_a_captured_failure_is_to_be_replayed_once(
    occurrences: tuple[Occurrence, ...], is_advised: bool
) -> None:
    run = Run.of({}, events=[Event(0, 0.0, what) for what in occurrences])
    assert ("holter try replay RUN" in advised_replay(run)) is is_advised
    shown = text.render(run, check(run))
    assert ("holter try replay RUN" in shown) is is_advised


OTHER_DATA = {
    "learning rate x 0.1": WindowMeasure(late_loss=4.0, onset_loss=6.0),
    "step skipped": WindowMeasure(),  # none was left to judge by
}


@pytest.mark.parametrize(
    ("tried", "unchanged", "level"),
    [
        (OTHER_DATA, WindowMeasure(nonfinite_at=9, onset_loss=7.0), 7.0),
        (OTHER_DATA, WindowMeasure(late_loss=50.0, onset_loss=7.0), 7.0),
        (OTHER_DATA, WindowMeasure(late_loss=8.0, onset_loss=7.0), None),  # it did not go on
        (OTHER_DATA, WindowMeasure(nonfinite_at=9, onset_loss=1.1), None),  # no rise
        (OTHER_DATA, WindowMeasure(nonfinite_at=9, onset_loss=70.0), None),  # one of the steps
        ({}, WindowMeasure(nonfinite_at=9, onset_loss=7.0), None),
        (
            {**OTHER_DATA, "step skipped": WindowMeasure(late_loss=1.0)},  # one batch
            WindowMeasure(nonfinite_at=9, onset_loss=7.0),
            None,
        ),
    ],
)
def test_the_level_of_other_data(tried, unchanged, level):
    normal = NORMAL.beside(unchanged, tried)
    assert normal.level == level
    cured = concluded(tried.get("learning rate x 0.1", WindowMeasure()), unchanged, normal)[0]
    assert (cured is CureOutcome.CURES) == (level is not None)


def test_a_rise_that_a_healthy_run_recovered_from_needs_no_replay() -> None:
    events = [Event(0, 0.0, CaptureWritten("spike", 120, "captures/step-120"))]
    run = run_of({LOSS: {"": np.geomspace(2, 0.01, 400)}}, events=events)
    checkup = check(run)
    assert not checkup.findings
    assert checkup.captured is None
    assert "holter try replay" not in text.render(run, checkup)
