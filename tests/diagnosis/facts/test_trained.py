import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rules.large_initial_loss import large_initial_loss
from holter.record import Run
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    OUTPUT_SIZE,
    OUTPUT_UNITS,
    PARAMETER_OPTIMIZER,
    TARGET_ENTROPY,
    WEIGHT_TOTAL_NORM,
)
from synthetic import found, run_of, said, series

STEPS = 80
EACH = np.ones(2 * STEPS)


def two_trainings(second: str, loss: np.ndarray) -> Run:
    """One training after another: of `second`, the model of the first or another one."""

    def in_turn(before: np.ndarray, after: np.ndarray) -> dict[str, object]:
        return {"": series(before), second: series(after, range(STEPS, 2 * STEPS))}

    held = {"weight": series([0], [0]), f"{second}.weight": series([1], [STEPS])}
    if second == "again":
        held = {"weight": series([0, 1], [0, STEPS])}
    return run_of(
        {
            LOSS: in_turn(np.geomspace(2, 0.5, STEPS), loss),
            GRAD_TOTAL_NORM: in_turn(EACH[:STEPS], loss),
            WEIGHT_TOTAL_NORM: in_turn(EACH[:STEPS], EACH[:STEPS]),
            PARAMETER_OPTIMIZER: held,
            OUTPUT_UNITS: {"cross_entropy": 10 * EACH},
            OUTPUT_SIZE: {"cross_entropy": np.repeat([1.0, 30.0], STEPS)},
            TARGET_ENTROPY: {"cross_entropy": 2.3 * EACH},
        }
    )


def test_the_first_loss_of_a_model_that_is_trained_later_is_that_of_initial_weights() -> None:
    run = two_trainings("Net (2)", 1 + 30 * np.exp(-np.arange(STEPS) / 60))
    assert Facts(run).fresh_start == STEPS
    (finding,) = found(large_initial_loss, run)
    assert finding.onset == STEPS
    assert all(evidence.steps[0] >= STEPS for evidence in finding.evidence)
    (verdict,) = said(large_initial_loss, two_trainings("Net (2)", np.geomspace(2, 0.5, STEPS)))
    assert "the first loss is 2" in verdict.because


def test_that_of_a_fine_tuning_is_not() -> None:
    run = two_trainings("again", 1 + 30 * np.exp(-np.arange(STEPS) / 60))
    assert Facts(run).fresh_start == 0
    assert Facts(run).gradient_scale is None
    assert not found(large_initial_loss, run)
