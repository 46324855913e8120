import math

from holter.diagnosis.rules.nonfinite_gradient import nonfinite_gradient
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import AMP_SKIPPED, GRAD_NONFINITE, GRAD_NORM, GRAD_TOTAL_NORM, LOSS
from synthetic import found, run_of, said

NAN, INF = math.nan, math.inf


def test_names_step_parameters_and_a_loss_that_is_still_finite() -> None:
    run = run_of(
        {
            GRAD_TOTAL_NORM: {"": [1.0, 1.0, NAN, NAN]},
            GRAD_NORM: {"a.weight": [1.0, 1.0, NAN, NAN], "b.weight": [1.0, 1.0, 1.0, NAN]},
            GRAD_NONFINITE: {"a.weight": [0, 0, 7, 9], "b.weight": [0, 0, 0, 9]},
            LOSS: {"": [2.0, 1.0, 0.5, NAN]},
        }
    )
    (finding,) = found(nonfinite_gradient, run)
    assert finding.onset == 2
    assert finding.confidence is Confidence.CERTAIN
    assert "a.weight" in finding.summary
    assert "b.weight" not in finding.summary
    assert "0.5" in finding.summary
    assert "a.weight" in finding.fix
    assert [evidence.signal for evidence in finding.evidence] == [GRAD_TOTAL_NORM, GRAD_NORM, LOSS]
    assert "7 elements in 1 parameters" in finding.evidence[1].says


def test_total_norm_alone_is_enough() -> None:
    (finding,) = found(nonfinite_gradient, run_of({GRAD_TOTAL_NORM: {"": [1.0, -INF]}}))
    assert finding.onset == 1
    assert [evidence.signal for evidence in finding.evidence] == [GRAD_TOTAL_NORM]


def test_parameters_may_have_been_thinned_out_at_that_step() -> None:
    run = run_of({GRAD_TOTAL_NORM: {"": [1.0, NAN, NAN]}, GRAD_NORM: {"a": [1.0]}})
    (finding,) = found(nonfinite_gradient, run)
    assert len(finding.evidence) == 1


def test_tells_an_overflowing_norm_from_bad_elements() -> None:
    run = run_of(
        {
            GRAD_TOTAL_NORM: {"": [INF]},
            GRAD_NORM: {"a": [INF]},
            GRAD_NONFINITE: {"a": [0.0]},
        }
    )
    (finding,) = found(nonfinite_gradient, run)
    assert "every element is finite" in finding.evidence[1].says


def test_steps_that_amp_skipped_are_left_out() -> None:
    run = run_of(
        {
            GRAD_TOTAL_NORM: {"": [INF, INF, 1.0, 1.0, 1.0]},
            AMP_SKIPPED: {"": [1.0, 1.0, 0.0, 0.0, 0.0]},
        }
    )
    (clear,) = said(nonfinite_gradient, run)
    assert isinstance(clear, Clear)
    assert "3 steps" in clear.because
    assert "skipped 2" in clear.because


def test_a_bad_step_among_skipped_ones_is_found() -> None:
    run = run_of(
        {
            GRAD_TOTAL_NORM: {"": [INF, 1.0, NAN, 1.0]},
            AMP_SKIPPED: {"": [1.0, 0.0, 0.0, 0.0]},
        }
    )
    (finding,) = found(nonfinite_gradient, run)
    assert finding.onset == 2


def test_skipping_every_step_is_neither_normal_nor_clear() -> None:
    run = run_of({GRAD_TOTAL_NORM: {"": [INF] * 5}, AMP_SKIPPED: {"": [1.0] * 5}})
    (verdict,) = said(nonfinite_gradient, run)
    assert isinstance(verdict, NotExamined)


def test_optimizers_are_judged_separately() -> None:
    run = run_of({GRAD_TOTAL_NORM: {"generator": [1.0, 1.0], "critic": [1.0, NAN]}})
    clear, finding = said(nonfinite_gradient, run)
    assert isinstance(clear, Clear)
    assert "critic" in finding.summary
