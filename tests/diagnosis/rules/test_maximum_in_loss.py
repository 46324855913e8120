import pytest

from holter.diagnosis.rules.maximum_in_loss import maximum_in_loss
from holter.record.findings import Clear, Confidence, Finding, NotExamined, Verdict
from holter.record.signals import LOSS_LARGEST_OUTPUT
from synthetic import run_of, said


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0] * 8, Finding),
        ([1.0] * 7 + [0.0], Clear),
        ([0.0] * 8, Clear),
        ([1.0] * 7, NotExamined),
    ],
)
def test_the_largest_output_on_every_step(values: list[float], kind: type[Verdict]) -> None:
    (verdict,) = said(maximum_in_loss, run_of({LOSS_LARGEST_OUTPUT: {"": values}}))
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert verdict.confidence is Confidence.HINT
