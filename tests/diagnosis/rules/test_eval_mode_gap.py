import numpy as np
import pytest

from holter.diagnosis.rules.eval_mode_gap import eval_mode_gap
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import (
    EVAL_GAP_LOSS,
    EVAL_GAP_MOMENTUM,
    EVAL_GAP_START,
    EVAL_GAP_VALUES,
    EVAL_GAP_VARIANCE,
)
from synthetic import found, run_of, said

NOISE = 0.02 * np.resize([1.0, -1.0], 8)


def measured(
    *,
    quiet: float = 0.5,
    train: float = 0.5,
    normed: float = 0.5,
    whole: float = 0.5,
    start: float = 2.3,
    factor: float | None = 1.1,
    momentum: float = 0.1,
) -> Run:
    losses = {
        "train": train + NOISE,
        "train without dropout": quiet + NOISE,
        "batch norm in eval mode": normed + NOISE[::-1],
        "eval": whole + NOISE[::-1],
    }
    signals = {EVAL_GAP_LOSS: losses, EVAL_GAP_START: {"": start + NOISE}}
    if factor is not None:
        signals[EVAL_GAP_VARIANCE] = {"layer4.bn": [factor]}
        signals[EVAL_GAP_VALUES] = {"layer4.bn": [4]}
        signals[EVAL_GAP_MOMENTUM] = {"layer4.bn": [momentum]}
    return run_of(signals)


@pytest.mark.parametrize(
    "losses",
    [
        {},
        {"train": 0.9},  # dropout
        {"whole": 0.3, "normed": 0.3},  # better in eval mode
        {"whole": 0.8, "normed": 0.8, "factor": 9},  # worse, by a sixth of what was gained
        {"whole": 1.5, "normed": 1.5, "train": 1.6, "factor": 9},  # no worse than in training
    ],
)
def test_silent(losses: dict[str, float]) -> None:
    (verdict,) = said(eval_mode_gap, measured(**losses))
    assert isinstance(verdict, Clear)


def test_batch_norm_is_likely_and_named() -> None:
    (finding,) = found(eval_mode_gap, measured(whole=1.94, normed=1.94, factor=9))
    assert finding.confidence is Confidence.LIKELY
    assert "1.94" in finding.summary
    assert finding.evidence[2].owner == "layer4.bn"
    assert "GroupNorm" in finding.fix


def test_a_momentum_of_zero_is_named() -> None:
    (finding,) = found(eval_mode_gap, measured(whole=1.9, normed=1.9, factor=9, momentum=0))
    assert "momentum" in finding.fix


def test_a_running_variance_that_fits_makes_it_a_hint() -> None:
    (finding,) = found(eval_mode_gap, measured(whole=1.5, normed=1.5, factor=1.2))
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[2].owner == "layer4.bn"


@pytest.mark.parametrize("factor", [None, 1.0])
def test_something_else_is_a_hint(factor: float | None) -> None:
    (finding,) = found(eval_mode_gap, measured(whole=1.94, factor=factor))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize("losses", [{"start": 0.4, "whole": 0.9}, {"whole": np.nan}])
def test_nothing_to_tell(losses: dict[str, float]) -> None:
    (verdict,) = said(eval_mode_gap, measured(**losses))
    assert isinstance(verdict, NotExamined)
