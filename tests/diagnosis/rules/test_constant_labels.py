import pytest

from holter.diagnosis.rules.constant_labels import constant_labels
from holter.record import Run
from holter.record.findings import Clear
from holter.record.signals import ACCURACY, OUTPUT_UNITS, TARGET_LARGEST_CLASS_FRACTION
from synthetic import found, run_of, said


def _run(*, share: float = 1.0, accuracy: float = 0.02, units: int = 40) -> Run:
    values = {TARGET_LARGEST_CLASS_FRACTION: share, ACCURACY: accuracy, OUTPUT_UNITS: units}
    return run_of({signal: {"cross_entropy": [each] * 30} for signal, each in values.items()})


def test_one_label_that_is_not_learned_is_reported() -> None:
    (finding,) = found(constant_labels, _run())
    assert "2.0%" in finding.summary


@pytest.mark.parametrize(
    "run",
    [_run(share=0.3), _run(accuracy=0.6), _run(units=2)],
    ids=["several", "learned", "two classes"],
)
def test_several_labels_or_one_that_is_learned_are_not(run: Run) -> None:
    (verdict,) = said(constant_labels, run)
    assert isinstance(verdict, Clear)
