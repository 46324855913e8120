import pytest

from holter.diagnosis.rules.augmented_validation import augmented_validation
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    REFETCH_INPUTS,
    REFETCH_NEARER,
    REFETCH_SAMPLES,
    REFETCH_TARGETS,
    REFETCH_TARGETS_LIKE_INPUTS,
    REFETCH_UNEXPLAINED,
    REFETCH_WITHIN_CLASSES,
    Signal,
)
from synthetic import run_of, said


def fetched(
    inputs: float,
    *,
    targets: float | None = 0.0,
    like: float = 0.0,
    near: float | None = 1.0,
    unexplained: float = 0.0,
    within: float | None = 1.0,
    samples: int = 16,
) -> Run:
    signals: dict[Signal, dict[str, list[float]]] = {
        REFETCH_INPUTS: {"train": [1.0], "valid": [inputs]},
        REFETCH_SAMPLES: {"train": [samples], "valid": [samples]},
        REFETCH_TARGETS_LIKE_INPUTS: {"valid": [like]},
        REFETCH_UNEXPLAINED: {"valid": [unexplained]},
    }
    for signal, value in (
        (REFETCH_TARGETS, targets),
        (REFETCH_NEARER, near),
        (REFETCH_WITHIN_CLASSES, within),
    ):
        if value is not None:
            signals[signal] = {"valid": [value]}
    return run_of(signals)


def test_the_same_every_time() -> None:
    (verdict,) = said(augmented_validation, fetched(0.0))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("run", "exception"),
    [
        (fetched(1.0, targets=None), "random-task"),  # without labels
        (fetched(1.0, targets=1.0), "random-task"),  # masked, or generated with their targets
        (fetched(1.0, like=1.0), "random-task"),  # denoising
        (fetched(1.0, near=0.5), "drawn-again"),
        (fetched(1.0, near=None), "drawn-again"),
    ],
)
def test_random_by_design(run: Run, exception: str) -> None:
    (note,) = said(augmented_validation, run)
    assert isinstance(note, Normal)
    assert note.exception == exception


@pytest.mark.parametrize(
    ("run", "confidence"),
    [
        (fetched(1.0), Confidence.LIKELY),
        (fetched(0.5), Confidence.LIKELY),  # flips
        (fetched(1.0, within=None), Confidence.LIKELY),  # targets that are no classes
        (fetched(1.0, within=0.0), Confidence.HINT),
        (fetched(1.0, unexplained=1.0), Confidence.HINT),
    ],
)
def test_versions_of_one_sample(run: Run, confidence: Confidence) -> None:
    (finding,) = said(augmented_validation, run)
    assert isinstance(finding, Finding)
    assert finding.confidence is confidence


@pytest.mark.parametrize(
    "run",
    [
        fetched(1.0, samples=4),
        run_of({REFETCH_INPUTS: {"train": [1.0]}, REFETCH_SAMPLES: {"train": [16]}}),
    ],
)
def test_too_little(run: Run) -> None:
    (verdict,) = said(augmented_validation, run)
    assert isinstance(verdict, NotExamined)
