from holter.diagnosis.rules.out_of_range_labels import out_of_range_labels
from holter.record import Event, Run
from holter.record.events import SamplesFound
from holter.record.findings import Clear, Finding, Normal
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
    (note,) = said(out_of_range_labels, labels(train=300, valid=300, trained=1600))
    assert isinstance(note, Normal)
    assert note.exception == "remapped"
    assert "1600 targets" in note.summary


def test_training_has_not_met_them_yet() -> None:
    finding, _ = said(out_of_range_labels, labels(train=1, valid=0, trained=1600))
    assert isinstance(finding, Finding)


def test_training_does_not_meet_validation_labels() -> None:
    _, finding = said(out_of_range_labels, labels(train=0, valid=300, trained=1600))
    assert isinstance(finding, Finding)


def test_within() -> None:
    verdicts = said(out_of_range_labels, labels(train=0, valid=0))
    assert [type(each) for each in verdicts] == [Clear, Clear]


def test_outside() -> None:
    finding, clear = said(out_of_range_labels, labels(train=1, valid=0))
    assert isinstance(finding, Finding)
    assert isinstance(clear, Clear)
    assert "(samples 7)" in finding.summary
