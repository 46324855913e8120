"""unseen-classes: the classes of both splits, on runs made by hand."""

import pytest

from holter.diagnosis.rules.unseen_classes import unseen_classes
from holter.record import Run
from holter.record.findings import Clear, Finding, NotExamined
from holter.record.signals import DATASET_CLASS, DATASET_CLASS_COUNT, DATASET_OUTPUTS
from synthetic import run_of, said


def run(train: dict[int, int], valid: dict[int, int]) -> Run:
    splits = {"train": train, "valid": valid}
    held = {split: counts for split, counts in splits.items() if counts}
    return run_of(
        {
            DATASET_CLASS: {split: [float(n) for n in counts] for split, counts in held.items()},
            DATASET_CLASS_COUNT: {
                split: [float(n) for n in counts.values()] for split, counts in held.items()
            },
            DATASET_OUTPUTS: {"train": [5.0]},
        }
    )


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (run({0: 400, 1: 400}, {2: 200}), Finding),
        (run({0: 400, 1: 400}, {0: 100, 1: 90, 4: 30}), Finding),
        (run({0: 400, 1: 400, 2: 9}, {0: 100, 2: 50}), Clear),
        (run({0: 40, 1: 40}, {0: 100, 1: 90, 4: 9}), Clear),  # by chance
        (run({0: 4000, 1: 4000}, {0: 1000, 4: 9}), Clear),  # a rare class
        (run({0: 4000, 1: 4000}, {}), NotExamined),
    ],
)
def test_verdicts(made: Run, kind: type) -> None:
    (verdict,) = said(unseen_classes, made)
    assert isinstance(verdict, kind), verdict
