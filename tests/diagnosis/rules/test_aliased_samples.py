import pytest

from holter import check
from holter.diagnosis.rules.aliased_samples import aliased_samples
from holter.record.findings import Clear, Confidence, NotExamined, Severity
from holter.record.signals import LOSS, SAMPLE_ALIASED
from synthetic import found, run_of, said, series


def test_a_buffer_that_holds_one_array() -> None:
    shares = series([0.0, 0.25, 0.5, 1.0], [10, 20, 30, 40])
    (finding,) = found(aliased_samples, run_of({SAMPLE_ALIASED: {"memory": shares}}))
    assert finding.confidence is Confidence.CERTAIN
    assert aliased_samples.severity is Severity.ERROR
    assert finding.onset == 30
    assert "100 % of the last elements of `memory`" in finding.summary
    assert finding.evidence[0].owner == "memory"
    assert "memory.append((state.copy(), ...))" in finding.fix


def test_several_buffers_are_one_finding() -> None:
    shares = {"self.memory.data": [0.6, 0.6], "recent": [0.0, 0.9], "fine": [0.0, 0.0]}
    (finding,) = found(aliased_samples, run_of({SAMPLE_ALIASED: shares}))
    assert "90 % of the last elements of `recent`, `self.memory.data`" in finding.summary
    assert "fine" not in finding.summary
    assert finding.onset == 0


@pytest.mark.parametrize(
    ("shares", "says"), [([0.0, 0.0], "no array in `memory`"), ([0.0, 0.2], "at most 20 %")]
)
def test_clear(shares: list[float], says: str) -> None:
    (verdict,) = said(aliased_samples, run_of({SAMPLE_ALIASED: {"memory": shares}}))
    assert isinstance(verdict, Clear)
    assert says in verdict.because


def test_the_threshold_is_an_option() -> None:
    run = run_of({SAMPLE_ALIASED: {"memory": [0.2, 0.2]}})
    assert found(aliased_samples, run, min_share=0.2)


def test_without_a_buffer_it_is_not_examined() -> None:
    verdicts = check(run_of({LOSS: {"": [1.0, 0.5]}})).not_examined
    (verdict,) = [each for each in verdicts if each.rule == "aliased-samples"]
    assert "no list or deque of samples grows" in verdict.because
    (empty,) = said(aliased_samples, run_of({SAMPLE_ALIASED: {"memory": []}}))
    assert isinstance(empty, NotExamined)
