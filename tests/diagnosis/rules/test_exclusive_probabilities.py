import pytest

from holter.diagnosis.rules.exclusive_probabilities import exclusive_probabilities
from holter.record.findings import Clear, Finding, NotExamined, Verdict
from holter.record.signals import EXCLUSIVE_DISTANCE, EXCLUSIVE_LABELS
from synthetic import run_of, said


@pytest.mark.parametrize(
    ("distance", "labels", "steps", "kind"),
    [
        (1e-6, 0.4, 8, Finding),
        (1e-6, 0.0, 8, Clear),  # one label in each row
        (0.3, 0.4, 8, Clear),  # a sigmoid for each label
        (1e-6, 0.4, 7, NotExamined),
    ],
)
def test_probabilities_that_add_up_to_one(
    distance: float, labels: float, steps: int, kind: type[Verdict]
) -> None:
    run = run_of(
        {
            EXCLUSIVE_DISTANCE: {"binary_cross_entropy": [distance] * steps},
            EXCLUSIVE_LABELS: {"binary_cross_entropy": [labels] * steps},
        }
    )
    (verdict,) = said(exclusive_probabilities, run)
    assert isinstance(verdict, kind)
