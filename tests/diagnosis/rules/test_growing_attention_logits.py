import numpy as np
import pytest

from holter.diagnosis.rules.growing_attention_logits import growing_attention_logits
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import ATTENTION_ENTROPY, ATTENTION_LOGIT_ABSMAX
from synthetic import found, run_of, said, series

STEPS = 200
TIME = np.linspace(0, 1, STEPS)
GROWING = 2 * np.exp(6 * TIME)


def given(logits: np.ndarray, entropy: np.ndarray | None = None) -> Run:
    signals = {ATTENTION_LOGIT_ABSMAX: {"attention 0": np.full(len(logits), 3.0),
                                        "attention 1": logits}}  # fmt: skip
    if entropy is not None:
        signals[ATTENTION_ENTROPY] = {"attention 0": np.ones(len(logits)), "attention 1": entropy}
    return run_of(signals)


def test_growing_alone_is_a_hint() -> None:
    (finding,) = found(growing_attention_logits, given(GROWING))
    assert finding.confidence is Confidence.HINT
    assert "attention 1" in finding.summary
    assert "still rising" in finding.summary
    assert 100 < finding.onset < 150  # where they pass 100
    assert not found(growing_attention_logits, given(GROWING), growth=500.0)
    assert not found(growing_attention_logits, given(GROWING), rising=50.0)


def test_with_one_sided_attention_it_is_likely() -> None:
    (finding,) = found(growing_attention_logits, given(GROWING, 1 - 0.9 * TIME))
    assert finding.confidence is Confidence.LIKELY
    assert [item.signal for item in finding.evidence] == [ATTENTION_LOGIT_ABSMAX, ATTENTION_ENTROPY]


def test_at_rest_where_nothing_is_left_to_learn_from() -> None:
    rest = np.minimum(2 * np.exp(20 * TIME), 1e4)
    (finding,) = found(growing_attention_logits, given(rest, np.where(TIME < 0.2, 0.9, 0.001)))
    assert finding.confidence is Confidence.LIKELY
    assert not found(growing_attention_logits, given(rest, np.full(STEPS, 0.9)))


@pytest.mark.parametrize(
    "logits",
    [
        8 * np.minimum(4 * TIME + 0.1, 1),
        30 * np.minimum(4 * TIME + 0.1, 1),  # a head that selects one position
        90 * TIME + 1,
        np.linspace(150, 250, STEPS),  # large from the start
        np.full(STEPS, 400.0),
    ],
)
def test_silent(logits: np.ndarray) -> None:
    (verdict,) = said(growing_attention_logits, given(logits, np.full(STEPS, 0.01)))
    assert isinstance(verdict, Clear)


def test_readings_of_the_first_part_alone_are_enough() -> None:
    steps = [*range(100), *range(100, 10_000, 500)]
    values = 2 * np.exp(6 * np.array(steps) / 10_000)
    run = run_of({ATTENTION_LOGIT_ABSMAX: {"attention 0": series(values, steps)}})
    assert found(growing_attention_logits, run)


def test_nan_is_left_out() -> None:
    holes = np.where(np.arange(STEPS) % 2, GROWING, np.nan)
    assert found(growing_attention_logits, given(holes))
    lost = run_of({ATTENTION_LOGIT_ABSMAX: {"attention 0": np.where(TIME < 0.5, 1, np.nan)}})
    (verdict,) = said(growing_attention_logits, lost)
    assert isinstance(verdict, NotExamined)


def test_too_short() -> None:
    (verdict,) = said(growing_attention_logits, given(GROWING[-19:]))
    assert isinstance(verdict, NotExamined)
