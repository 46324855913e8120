import math

from holter.diagnosis.rules.nonfinite_weights import nonfinite_weights
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
    WEIGHT_NORM,
    WEIGHT_TOTAL_NORM,
)
from synthetic import found, run_of, said

NAN, INF = math.nan, math.inf


def test_blames_the_update_where_loss_and_gradient_are_finite() -> None:
    run = run_of(
        {
            WEIGHT_TOTAL_NORM: {"": [3.0, NAN, NAN]},
            WEIGHT_NORM: {"a": [1.0, 1.0, NAN], "b": [2.0, NAN, NAN]},
            GRAD_TOTAL_NORM: {"": [1.0, 0.25, NAN]},
            LOSS: {"": [2.0, 1.5, NAN]},
        }
    )
    (finding,) = found(nonfinite_weights, run)
    assert finding.onset == 1
    assert finding.confidence is Confidence.CERTAIN
    assert finding.summary.startswith("b became NaN in step 1")
    assert "0.25" in finding.summary
    assert "1.5" in finding.summary
    assert "eps" in finding.fix
    assert [evidence.signal for evidence in finding.evidence] == [WEIGHT_TOTAL_NORM, WEIGHT_NORM]


def test_does_not_blame_the_update_for_a_bad_gradient_or_loss() -> None:
    for gradient, loss in ((NAN, 1.0), (1.0, INF)):
        run = run_of(
            {
                WEIGHT_TOTAL_NORM: {"": [NAN]},
                GRAD_TOTAL_NORM: {"": [gradient]},
                LOSS: {"": [loss]},
            }
        )
        (finding,) = found(nonfinite_weights, run)
        assert "update" not in finding.summary


def test_total_norm_alone_is_enough() -> None:
    (finding,) = found(nonfinite_weights, run_of({WEIGHT_TOTAL_NORM: {"": [1.0, INF]}}))
    assert finding.onset == 1
    assert "inf" in finding.summary


def test_finite_weights_are_clear() -> None:
    (verdict,) = said(nonfinite_weights, run_of({WEIGHT_TOTAL_NORM: {"": [1.0, 2.0]}}))
    assert isinstance(verdict, Clear)
    assert "2 steps" in verdict.because


def masked(trained: list[float]) -> Run:
    """A run whose frozen mask of infinities is held by the optimizer, and a trained weight."""
    return run_of(
        {
            WEIGHT_TOTAL_NORM: {"": [INF, INF, INF]},
            WEIGHT_NORM: {"mask": [INF, INF, INF], "a": trained},
            PARAMETER_TRAINABLE: {"mask": [0.0], "a": [1.0]},
            PARAMETER_OPTIMIZER: {"mask": [0.0], "a": [0.0]},
        }
    )


def test_infinities_in_frozen_parameters_are_normal() -> None:
    normal, clear = said(nonfinite_weights, masked([1.0, 1.0, 1.0]))
    assert isinstance(normal, Normal)
    assert isinstance(clear, Clear)
    assert "mask" in normal.summary


def test_infinities_in_frozen_parameters_hide_no_trained_weight() -> None:
    (finding,) = found(nonfinite_weights, masked([1.0, NAN, NAN]))
    assert finding.onset == 1
    assert finding.summary.startswith("a became NaN in step 1")
