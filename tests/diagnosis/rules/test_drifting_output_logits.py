import numpy as np
import pytest

from holter.diagnosis.rules.drifting_output_logits import drifting_output_logits
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import OUTPUT_LOG_NORMALISER, OUTPUT_SIZE, OUTPUT_SPREAD
from synthetic import found, run_of, said

STEPS = 200
DRIFT = np.linspace(2, 200, STEPS)


def given(normaliser: np.ndarray, *, spread: float = 3.0, size: np.ndarray | None = None) -> Run:
    values = {
        OUTPUT_LOG_NORMALISER: normaliser,
        OUTPUT_SPREAD: np.full(len(normaliser), spread),
        OUTPUT_SIZE: np.abs(normaliser) if size is None else size,
    }
    return run_of({signal: {"cross_entropy": series} for signal, series in values.items()})


@pytest.mark.parametrize("sign", [1, -1])
def test_all_logits_drift(sign: int) -> None:
    (finding,) = found(drifting_output_logits, given(sign * DRIFT))
    assert finding.confidence is Confidence.HINT
    assert 40 < finding.onset < 60
    assert "186" in finding.summary
    assert not found(drifting_output_logits, given(sign * DRIFT), together=1.1)


@pytest.mark.parametrize(
    "run",
    [
        given(np.full(STEPS, 4.0)),
        given(np.full(STEPS, 200.0)),  # large, but at rest
        given(DRIFT / 5),
        given(DRIFT, spread=80.0),  # a confident classifier
        given(DRIFT, size=DRIFT / 10),  # scaled cosines: one logit of each sample is large
        given(np.minimum(DRIFT, 100)),
    ],
)
def test_silent(run: Run) -> None:
    (verdict,) = said(drifting_output_logits, run)
    assert isinstance(verdict, Clear)


def test_nan_is_left_out() -> None:
    assert found(drifting_output_logits, given(np.where(np.arange(STEPS) % 2, DRIFT, np.nan)))
    (verdict,) = said(drifting_output_logits, given(np.where(DRIFT > 100, np.nan, DRIFT)))
    assert isinstance(verdict, NotExamined)


def test_too_short() -> None:
    (verdict,) = said(drifting_output_logits, given(DRIFT[-19:]))
    assert isinstance(verdict, NotExamined)
