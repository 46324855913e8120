import numpy as np
import pytest

from holter.diagnosis.rules.large_initial_loss import large_initial_loss
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import (
    BACKWARD_CALLS,
    LOSS,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
    OUTPUT_LOG_NORMALISER,
    OUTPUT_SIZE,
    OUTPUT_UNITS,
    TARGET_ENTROPY,
)
from synthetic import found, run_of, said, series


def run_with(
    loss: np.ndarray,
    *,
    size: float | None = 30.0,
    function: str = "cross_entropy",
    **more: object,
) -> Run:
    each = np.ones(len(loss))
    signals = {
        LOSS: {"": loss},
        OUTPUT_UNITS: {function: 10 * each},
        TARGET_ENTROPY: {function: 2.3 * each},
    }
    if size is not None:
        signals[OUTPUT_SIZE] = {function: size * each}
    return run_of({**signals, **more.get("signals", {})})


def slow(first: float, steps: int = 200) -> np.ndarray:
    return 1 + (first - 1) * np.exp(-np.arange(steps) / 60)


def test_fires_and_logits_make_it_likely() -> None:
    (finding,) = found(large_initial_loss, run_with(slow(27.0, steps=100)))
    assert finding.confidence is Confidence.LIKELY
    assert finding.severity is Severity.WARNING
    assert finding.onset == 0
    assert {evidence.signal for evidence in finding.evidence} == {LOSS, OUTPUT_SIZE}
    (finding,) = found(large_initial_loss, run_with(slow(27.0), size=None))
    assert finding.confidence is Confidence.HINT


def test_undivided_accumulation_is_no_large_loss() -> None:
    each = np.ones(200)
    counted = {LOSS_ROOT_SHARE: {"": each}, BACKWARD_CALLS: {"": 8 * each}}
    (verdict,) = said(large_initial_loss, run_with(8 * slow(2.4), signals=counted))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    "run",
    [
        run_with(slow(2.3)),
        run_with(slow(6.8)),  # under three times
        run_with(slow(1.0), function="binary_cross_entropy_with_logits"),
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(large_initial_loss, run)
    assert isinstance(verdict, Clear)
    assert verdict.because


def falling(first: float, steps: int = 400, *, over: float = 8.0) -> np.ndarray:
    return 1 + (first - 1) * np.exp(-np.arange(steps) / over)


def sizes(first: float, last: float, steps: int = 400) -> dict[object, object]:
    return {OUTPUT_SIZE: {"cross_entropy": np.linspace(first, last, steps)}}


def test_a_bad_start_that_is_soon_over_is_a_hint_for_information() -> None:
    shrinking = sizes(30.0, 3.0)
    (finding,) = found(large_initial_loss, run_with(falling(27.0), signals=shrinking))
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.HINT
    (note,) = said(large_initial_loss, run_with(falling(27.0), size=None))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_small_logits_make_it_a_hint() -> None:
    (finding,) = found(large_initial_loss, run_with(slow(27.0, steps=100), size=1.0))
    assert finding.confidence is Confidence.HINT


def test_logits_that_stay_large_while_the_loss_is_low_are_meant_to_be() -> None:
    (note,) = said(large_initial_loss, run_with(falling(27.0)))
    assert isinstance(note, Normal)
    (finding,) = found(large_initial_loss, run_with(falling(27.0, over=60.0)))
    assert finding.confidence is Confidence.HINT
    shrinking = sizes(30.0, 3.0)
    run = run_with(falling(27.0, over=60.0), signals=shrinking)
    (finding,) = found(large_initial_loss, run)
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(("normaliser", "has_margin"), [(15.0, True), (40.0, False), (32.0, False)])
def test_a_margin_that_is_taken_from_the_targets_is_on_purpose(
    normaliser: float, has_margin: bool
) -> None:
    # an ArcFace head: the loss is 45 and the logits of the targets are 30 below zero, at 14 rms
    signals = {OUTPUT_LOG_NORMALISER: {"cross_entropy": np.full(200, normaliser)}}
    (verdict,) = said(large_initial_loss, run_with(slow(45.0), size=14.0, signals=signals))
    assert isinstance(verdict, Normal) is has_margin
    if isinstance(verdict, Normal):
        assert verdict.exception == "margin"


@pytest.mark.parametrize(
    ("run", "because"),
    [
        (run_with(slow(27.0), function="mse_loss"), "not one cross entropy"),
        (
            run_with(slow(270.0), signals={LOSS_SUMMED: {"cross_entropy": [1.0]}}),
            "number of elements",
        ),
        (run_with(slow(27.0), signals={LOSS: {"": series([27.0], [5])}}), "before the first"),
        (run_with(slow(27.0, steps=10)), "10 of the 20"),
        (run_with(np.full(10, np.nan)), "before the first"),
        (run_with(slow(27.0), signals={LOSS: {"g": [27.0], "d": [28.0]}}), "compete"),
    ],
)
def test_says_what_it_lacks(run: Run, because: str) -> None:
    (verdict,) = said(large_initial_loss, run)
    assert isinstance(verdict, NotExamined)
    assert because in verdict.because
