from holter.diagnosis.rules.out_of_range_labels import out_of_range_labels
from holter.record import Event, Run
from holter.record.events import SamplesFound
from holter.record.findings import Clear, Finding, NotExamined
from holter.record.signals import (
    DATASET_EXAMINED,
    DATASET_OUT_OF_RANGE,
    DATASET_OUTPUTS,
    TARGET_COUNT,
)
from synthetic import run_of, said


def labels(*, trained: int = 0, **outside: float) -> Run:
    named = SamplesFound("out of range", "train", indices=(7,))
    return run_of(
        {
            DATASET_EXAMINED: {key: [500.0] for key in outside},
            DATASET_OUTPUTS: {key: [4.0] for key in outside},
            DATASET_OUT_OF_RANGE: {split: [count] for split, count in outside.items()},
            TARGET_COUNT: {"cross_entropy": [32.0] * (trained // 32)},
        },
        events=[Event(0, 0.0, named)],
    )


def test_training_would_have_met_them() -> None:
    (verdict,) = said(out_of_range_labels, labels(train=300, valid=0, trained=1600))
    assert isinstance(verdict, NotExamined)
    assert "1600 targets" in verdict.because


def test_within() -> None:
    verdicts = said(out_of_range_labels, labels(train=0, valid=0))
    assert [type(each) for each in verdicts] == [Clear, Clear]


def test_outside() -> None:
    finding, clear = said(out_of_range_labels, labels(train=1, valid=0))
    assert isinstance(finding, Finding)
    assert isinstance(clear, Clear)
    assert "4 classes that the loss is given (7)" in finding.summary
