import numpy as np
import pytest

from holter.diagnosis.rules.constant_validation import constant_validation
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import LOSS, OUTPUT_SIZE, UPDATE_RATIO, VAL_LOSS, WEIGHT_TOTAL_NORM
from synthetic import found, run_of, said, series

STEPS = 100
NOISE = np.random.default_rng(0).normal(size=STEPS)
FALLING = np.linspace(2, 1, STEPS) + 0.05 * NOISE


def run_with(
    validation: list[float],
    *,
    update: float | None = 1e-3,
    loss: np.ndarray = FALLING,
    owner: str = "cross_entropy",
) -> Run:
    passes = np.linspace(9, STEPS - 1, len(validation)).astype(int)
    signals = {LOSS: {"": loss}, VAL_LOSS: {owner: series(validation, passes)}}
    if update is not None:
        signals[UPDATE_RATIO] = {"weight": np.full(STEPS, update)}
    return run_of(signals)


def test_fires_on_the_same_loss_each_time() -> None:
    (finding,) = found(constant_validation, run_with([1.7] * 6))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 9


def test_a_reference_beside_the_model_is_normal() -> None:
    signals = {
        LOSS: {"": FALLING},
        UPDATE_RATIO: {"weight": np.full(STEPS, 1e-3)},
        OUTPUT_SIZE: {"smooth_l1_loss": np.ones(STEPS)},
    }
    baseline = {"mse_loss": series([1.7] * 6, range(9, 69, 10))}
    own = {"smooth_l1_loss": series([0.9, 0.7, 0.6, 0.5, 0.4, 0.4], range(9, 69, 10))}
    notes = said(constant_validation, run_of({**signals, VAL_LOSS: {**baseline, **own}}))
    assert [each.exception for each in notes if isinstance(each, Normal)] == ["reference-model"]
    assert not found(constant_validation, run_of({**signals, VAL_LOSS: {**baseline, **own}}))
    assert found(constant_validation, run_of({**signals, VAL_LOSS: baseline}))


def test_the_last_passes_are_enough() -> None:
    (finding,) = found(constant_validation, run_with([2.0, 1.8, 1.7, 1.7, 1.7, 1.7]))
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset > 40


def test_without_updates_a_falling_loss_shows_that_weights_move() -> None:
    (finding,) = found(constant_validation, run_with([1.7] * 6, update=None))
    assert finding.confidence is Confidence.LIKELY
    noisy = run_with([1.7] * 6, update=None, loss=2 + 0.05 * NOISE)
    assert isinstance(said(constant_validation, noisy)[0], NotExamined)


def test_weight_norms_show_it_as_well() -> None:
    for norms, count in ((np.linspace(1, 2, STEPS), 1), (np.ones(STEPS), 0)):
        run = run_of(
            {
                LOSS: {"": FALLING},
                VAL_LOSS: {"mse_loss": series([1.7] * 6, range(9, 69, 10))},
                WEIGHT_TOTAL_NORM: {"": norms},
            }
        )
        assert len(found(constant_validation, run)) == count


@pytest.mark.parametrize(
    "run",
    [
        run_with([1.7] * 6, update=0.0),  # nothing moves: another rule's matter
        run_with([1.7] * 6, update=1e-8),
        run_with([2.0, 1.8, 1.7, 1.6, 1.6, 1.6]),  # three are chance
        run_with([1.7, 1.7, 1.7, 1.7, 1.7, 1.6]),
    ],
)
def test_stays_silent(run: Run) -> None:
    (verdict,) = said(constant_validation, run)
    assert isinstance(verdict, Clear)


def test_a_logged_loss_that_stays_may_be_the_best_so_far() -> None:
    (finding,) = found(constant_validation, run_with([2.0] + [1.7] * 5, owner=""))
    assert finding.confidence is Confidence.HINT
    (finding,) = found(constant_validation, run_with([1.7] * 6, owner=""))
    assert finding.confidence is Confidence.CERTAIN


def test_a_loss_of_zero_has_done_no_damage() -> None:
    (note,) = said(constant_validation, run_with([0.0] * 6))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_nan_is_not_the_same_and_few_are_not_enough() -> None:
    assert found(constant_validation, run_with([np.nan] * 6)) == []
    (verdict,) = said(constant_validation, run_with([1.7] * 3))
    assert isinstance(verdict, NotExamined)


def test_a_baseline_beside_a_loss_that_changes_is_a_hint() -> None:
    passes = range(9, 69, 10)
    signals = {LOSS: {"": FALLING}, UPDATE_RATIO: {"weight": np.full(STEPS, 1e-3)}}
    fixed = {"mse_loss on eval.py:49": series([1.7] * 6, passes)}
    changing = {"mse_loss": series([0.9, 0.7, 0.6, 0.5, 0.4, 0.4], passes)}
    (finding,) = found(constant_validation, run_of({**signals, VAL_LOSS: {**fixed, **changing}}))
    assert finding.confidence is Confidence.HINT
    (finding,) = found(constant_validation, run_of({**signals, VAL_LOSS: fixed}))
    assert finding.confidence is Confidence.CERTAIN
