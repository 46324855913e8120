import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.unfittable_batch import unfittable_batch
from holter.record import Event, Run
from holter.record.events import Occurrence, OutOfTime, OverfitFloor
from holter.record.findings import (
    Clear,
    Confidence,
    Finding,
    Normal,
    NotExamined,
    Severity,
    Verdict,
)
from holter.record.signals import (
    OVERFIT_CONSTANT,
    OVERFIT_EXCHANGED,
    OVERFIT_FLOOR,
    OVERFIT_FREE_FLOOR,
    OVERFIT_HELD,
    OVERFIT_LOSS,
    OVERFIT_MOVED,
    OVERFIT_NOISE,
    OVERFIT_QUIET,
    OVERFIT_RATE,
    OVERFIT_REACHED,
    OVERFIT_SAMPLES,
    OVERFIT_SPREAD,
    OVERFIT_TARGETS,
    OVERFIT_TRAINABLE,
    Signal,
)
from synthetic import run_of, said

AS_IT_IS = "unchanged"
USUAL = {
    OVERFIT_FLOOR: 0.0,
    OVERFIT_CONSTANT: 2.0,
    OVERFIT_SAMPLES: 8,
    OVERFIT_RATE: 1e-3,
    OVERFIT_NOISE: 0.0,
    OVERFIT_SPREAD: 0.5,
    OVERFIT_TARGETS: 8,
    OVERFIT_TRAINABLE: 1000,
    OVERFIT_HELD: 1000,
    OVERFIT_REACHED: 1000,
    OVERFIT_MOVED: 1000,
}


def down(start: float, end: float, steps: int = 300, *, rest: float = 0.05) -> np.ndarray:
    """A loss that comes to rest at `end` within a part of its steps."""
    return end + (start - end) * np.exp(-np.arange(steps) / (rest * steps))


def line(start: float, end: float, steps: int = 300) -> np.ndarray:
    return np.linspace(start, end, steps)


FITS = down(2.3, 0.001)
RESTS = down(2.3, 1.4)


def fitted(
    plain: np.ndarray,
    changed: dict[str, np.ndarray] | None = None,
    known: dict[Signal, float | None] | None = None,
    events: tuple[Event[Occurrence], ...] = (),
) -> Run:
    """A run of the trial as it is, of changes in their order, and what else was measured."""
    values = {**USUAL, **(known or {})}
    return run_of(
        {
            OVERFIT_LOSS: {AS_IT_IS: plain, **(changed or {})},
            **{s: {AS_IT_IS: [v]} for s, v in values.items() if v is not None},
        },
        events=events,
    )


def verdict(*given: object, **named: object) -> Verdict:
    (found,) = said(unfittable_batch, fitted(*given, **named))  # type: ignore[arg-type]
    return found


def finding(*given: object, **named: object) -> Finding:
    found = verdict(*given, **named)
    assert isinstance(found, Finding)
    return found


@pytest.mark.parametrize(
    ("curve", "known"),
    [
        (FITS, {}),
        (down(2.4, 0.51), {OVERFIT_FLOOR: 0.5}),
        (down(50, 0.1), {}),
        (down(2.3, 0.1), {OVERFIT_FLOOR: None, OVERFIT_FREE_FLOOR: 0.0}),
        (down(2.3, 0.1), {OVERFIT_FLOOR: None, OVERFIT_CONSTANT: None}),
        (down(2.3, 0.9), {OVERFIT_QUIET: 0.01}),  # dropout is what keeps it up
        (down(0.3, -3.4), {OVERFIT_FLOOR: None, OVERFIT_FREE_FLOOR: -3.5}),
    ],
)
def test_memorised(curve: np.ndarray, known: dict[Signal, float | None]) -> None:
    assert isinstance(verdict(curve, None, known), Clear)


def test_says_by_what_it_is_clear() -> None:
    event = Event(0, 0.0, OverfitFloor(AS_IT_IS, because="label smoothing 0.1"))
    found = verdict(down(2.4, 0.51), None, {OVERFIT_FLOOR: 0.5, OVERFIT_EXCHANGED: 4.4}, (event,))
    assert isinstance(found, Clear)
    for part in ("8 samples", "2.4 -> 0.51", "label smoothing 0.1", "4.4"):
        assert part in found.because


@pytest.mark.parametrize(
    ("curve", "known"),
    [
        (line(2.3, 1.5), {}),  # it falls all the time
        (down(2.3, 0.4, rest=0.4), {}),  # more slowly, but soon there
        (np.full(300, np.nan), {}),
        (FITS, {OVERFIT_CONSTANT: 0.0}),  # all targets are the same
        (np.full(20, 0.01), {}),  # known before the first step
        (down(0.2, -1), {OVERFIT_FLOOR: None}),
        (down(2.3, -4), {}),  # under its floor
        (RESTS, {OVERFIT_RATE: 0.0}),
        (down(2.3, 1.98), {OVERFIT_FLOOR: 1.9, OVERFIT_NOISE: 0.1}),  # labels drawn again
        (np.full(20, 2.2), {}),  # too few steps
        (RESTS, {OVERFIT_FLOOR: None, OVERFIT_FREE_FLOOR: 0.0}),  # may be out of reach
        (RESTS, {OVERFIT_FLOOR: None, OVERFIT_CONSTANT: None, OVERFIT_NOISE: 0.1}),
        (down(2.3, 0.8), {}),  # much is learned
    ],
)
def test_does_not_judge(curve: np.ndarray, known: dict[Signal, float | None]) -> None:
    assert isinstance(verdict(curve, None, known), NotExamined)


CHANGES = (
    "logits in place of probabilities",
    "predictions in the shape of the targets",
    "without the last ReLU",
    "dropout off",
    "clipping off",
    "weight decay 0",
    "learning rate x 100",
    "batch norm in train mode",
)


@pytest.mark.parametrize("change", CHANGES)
def test_the_first_change_that_fits_names_the_cause(change: str) -> None:
    found = finding(RESTS, {"inputs replaced by noise": RESTS, change: FITS, "2 samples": FITS})
    assert found.confidence is Confidence.LIKELY
    assert found.severity is Severity.ERROR
    assert [each.owner for each in found.evidence[:2]] == [AS_IT_IS, change]
    assert found.fix


@pytest.mark.parametrize("change", ["dropout off", "weight decay 0", "learning rate x 0.1"])
def test_what_may_be_a_recipe_is_normal_where_much_is_learned(change: str) -> None:
    note = verdict(down(2.3, 0.7), {change: FITS})
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


@pytest.mark.parametrize(
    ("change", "exception"),
    [
        ("same random numbers in every step", "random-step"),
        ("Adam with all parameters trainable", "frozen-layers"),
    ],
)
def test_exceptions_by_the_change_that_fits(change: str, exception: str) -> None:
    note = verdict(RESTS, {change: FITS})
    assert isinstance(note, Normal)
    assert note.exception == exception
    assert isinstance(verdict(RESTS, {change: RESTS}), Finding)


def test_a_mistake_is_one_even_if_much_is_learned() -> None:
    assert finding(down(2.3, 0.7), {"logits in place of probabilities": FITS})


def test_ten_times_the_rate_is_a_hint() -> None:
    found = finding(RESTS, {"learning rate x 10": FITS})
    assert found.confidence is Confidence.HINT
    assert found.severity is Severity.WARNING


def test_a_rate_that_needs_too_many_steps_is_too_low() -> None:
    found = finding(line(2.3, 2.2999, 900), {"learning rate x 1000": FITS}, {OVERFIT_RATE: 1e-7})
    assert "1e-07" in found.summary
    assert "0.0001" in found.fix


def test_a_slow_plateau_is_not_judged_by_a_higher_rate() -> None:
    slow = np.concatenate((down(2.3, 2.0, 100), line(2.0, 1.99, 200)))
    assert isinstance(verdict(slow, {"learning rate x 100": FITS}), NotExamined)


def test_a_rate_that_is_too_high() -> None:
    lost = np.array([2.3, 9, 80, 7e3, 1e9, np.inf])
    found = finding(lost, {"learning rate x 0.1": lost, "learning rate x 0.01": FITS})
    assert found.confidence is Confidence.LIKELY
    assert found.evidence[1].owner == "learning rate x 0.01"


@pytest.mark.parametrize(
    "known",
    [
        {OVERFIT_TRAINABLE: 0, OVERFIT_HELD: 0, OVERFIT_REACHED: 0},
        {OVERFIT_HELD: 0},
        {OVERFIT_REACHED: 0},
    ],
)
def test_parameters_that_cannot_move_are_certain(known: dict[Signal, float | None]) -> None:
    changed = {"Adam on all trainable parameters": np.full(100, 2.3)}
    found = finding(np.full(300, 2.3), changed, {OVERFIT_MOVED: 0, **known})
    assert found.confidence is Confidence.CERTAIN


def test_an_optimizer_without_some_parameters() -> None:
    changed = {"Adam on all trainable parameters": FITS}
    found = finding(RESTS, changed, {OVERFIT_HELD: 12})
    assert found.confidence is Confidence.LIKELY
    assert "12 of 1,000" in found.summary


def test_one_answer_for_all() -> None:
    found = finding(down(2.3, 2.0), {"weights re-initialised": RESTS}, {OVERFIT_SPREAD: 1e-6})
    assert found.confidence is Confidence.LIKELY
    assert found.evidence[-1].signal is OVERFIT_SPREAD


def test_lost_whatever_is_changed() -> None:
    lost = np.array([2.3, 2.2, np.nan])
    found = finding(lost, {"learning rate x 0.1": lost, "dropout off": lost})
    assert found.confidence is Confidence.LIKELY


def test_nothing_makes_it_fit() -> None:
    found = finding(RESTS, {"learning rate x 10": RESTS, "weight decay 0": RESTS})
    assert found.confidence is Confidence.HINT


@pytest.mark.parametrize("change", ["weights re-initialised", "inputs replaced by noise"])
def test_small_models_fit_by_chance(change: str) -> None:
    note = verdict(RESTS, {change: FITS}, {OVERFIT_TRAINABLE: 40})
    assert isinstance(note, Normal)
    assert note.exception == "few-parameters"
    assert finding(RESTS, {change: FITS}).confidence is Confidence.HINT
    assert finding(down(2.3, 1.95), {change: FITS}).confidence is Confidence.LIKELY


def test_a_small_model_that_fits_by_a_real_fix_is_reported() -> None:
    found = finding(RESTS, {"clipping off": FITS}, {OVERFIT_TRAINABLE: 40})
    assert found.confidence is Confidence.LIKELY


def test_controls_are_no_cause() -> None:
    controls = {"labels rolled by one sample": FITS, "2 samples": FITS}
    assert isinstance(verdict(RESTS, {"weight decay 0": RESTS, **controls}), NotExamined)


def test_other_samples_have_a_floor_of_their_own() -> None:
    run = fitted(RESTS, {"weight decay 0": RESTS, "2 samples": down(2.3, 1.0)})
    own = run_of({OVERFIT_FLOOR: {AS_IT_IS: [0.0], "2 samples": [1.0]}})
    (found,) = said(unfittable_batch, Run({**run.tables, **own.tables}))
    assert isinstance(found, NotExamined)  # two samples do fit


def test_out_of_time() -> None:
    event = Event(0, 0.0, OutOfTime("overfit-batch", "learning rate x 10"))
    assert isinstance(verdict(RESTS, None, None, (event,)), NotExamined)


def test_a_run_without_the_plain_trial() -> None:
    (found,) = said(unfittable_batch, run_of({OVERFIT_LOSS: {"dropout off": FITS}}))
    assert isinstance(found, NotExamined)
