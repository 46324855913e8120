import pytest

from holter.diagnosis.rules.batch_axis_softmax import batch_axis_softmax
from holter.record.findings import Clear, Confidence, NotExamined, Verdict
from holter.record.signals import LOSS_BATCH_SOFTMAX
from synthetic import found, run_of, said


def test_on_nearly_all_steps() -> None:
    (finding,) = found(batch_axis_softmax, run_of({LOSS_BATCH_SOFTMAX: {"": [1.0] * 19 + [0.0]}}))
    assert finding.confidence is Confidence.CERTAIN


@pytest.mark.parametrize(
    ("values", "kind"), [([0.0] * 20, Clear), ([1.0, 0.0] * 10, Clear), ([1.0] * 2, NotExamined)]
)
def test_silent(values: list[float], kind: type[Verdict]) -> None:
    (verdict,) = said(batch_axis_softmax, run_of({LOSS_BATCH_SOFTMAX: {"": values}}))
    assert isinstance(verdict, kind)
