from typing import Any

import pytest

from holter.diagnosis.rules.overlapping_splits import overlapping_splits
from holter.record import Event, Run
from holter.record.events import SamplesFound
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Severity
from holter.record.signals import (
    DATASET_DIMENSIONS,
    DATASET_DISTINCT,
    DATASET_DUPLICATES,
    DATASET_EXAMINED,
    DATASET_LENGTH,
    DATASET_OVERLAP,
    DATASET_SHARED_POSITIONS,
    DATASET_VALUES,
    DATASET_WINDOW_OVERLAP,
    Signal,
)
from synthetic import run_of, said


def splits(
    share: float,
    copies: float = 0.0,
    *,
    train: int = 1000,
    valid: int = 200,
    length: int | None = None,
    values: int | None = None,
    positions: dict[str, float] | None = None,
    windows: float = 0.0,
) -> Run:
    signals: dict[Signal, dict[str, list[float]]] = {
        DATASET_EXAMINED: {"train": [train], "valid": [valid]},
        DATASET_LENGTH: {"train": [length or train], "valid": [valid]},
        DATASET_DISTINCT: {"train": [train * (1 - copies / 2)]},
        DATASET_DUPLICATES: {"train": [copies]},
        DATASET_DIMENSIONS: {"train": [1.0]},
        DATASET_OVERLAP: {"inputs": [share], "inputs and targets": [share]},
    }
    signals[DATASET_WINDOW_OVERLAP] = {"inputs": [windows]}
    if values is not None:
        signals[DATASET_VALUES] = {"train": [values]}
    if positions is not None:
        signals[DATASET_SHARED_POSITIONS] = {name: [each] for name, each in positions.items()}
    kinds = ("overlap", "window overlap")
    pairs = [Event(0, 0.0, SamplesFound(kind, pairs=([3, 17],))) for kind in kinds]
    return run_of(signals, events=pairs)


@pytest.mark.parametrize(
    ("share", "copies", "how"),
    [
        (0.0, 0.0, {}),
        (0.01, 0.0, {}),  # two of 200
        (0.02, 0.0, {}),  # four of 200 may be anything
        (0.01, 0.0, {"valid": 2000, "train": 2000, "length": 2000}),
        (0.4, 0.38, {}),  # twelve bits
        (1.0, 1.0, {}),  # four bits
        (1.0, 0.96, {}),
        (0.3, 0.3, {"values": 2}),
        (0.05, 0.06, {"values": 5000}),  # natural duplicates
        (0.0, 0.5, {"values": 5000}),  # copies in training alone
        (0.001, 0.0, {"valid": 2000, "train": 2000, "length": 50_000}),  # two hits of luck
        (0.0, 0.0, {"values": 5000, "windows": 0.1}),  # at the border of two times
        (0.0, 0.0, {"values": 20, "windows": 0.9}),  # of few different numbers
        (0.0, 0.0, {"positions": {"same": 0.0}}),
        (0.0, 0.0, {"positions": {"alike": 0.01}}),
    ],
)
def test_coincidence_is_no_leak(share: float, copies: float, how: dict[str, Any]) -> None:
    verdicts = said(overlapping_splits, splits(share, copies, **how))
    assert verdicts
    assert all(isinstance(each, Clear | Normal) for each in verdicts)


@pytest.mark.parametrize(
    ("share", "copies", "how", "confidence"),
    [
        (1.0, 0.0, {}, Confidence.CERTAIN),
        (1.0, 0.3, {}, Confidence.CERTAIN),
        (0.2, 0.0, {}, Confidence.LIKELY),
        (1.0, 0.6, {}, Confidence.LIKELY),  # after copying, as a whole
        (0.04, 0.0, {"valid": 2000, "train": 2000, "length": 50_000}, Confidence.LIKELY),
        (0.0, 0.0, {"positions": {"same": 0.3}}, Confidence.CERTAIN),
        (0.0, 0.0, {"positions": {"alike": 0.8}}, Confidence.LIKELY),
        (0.3, 0.3, {"values": 5000}, Confidence.HINT),
        (0.0, 0.0, {"values": 5000, "windows": 0.4}, Confidence.HINT),
        (0.0, 0.0, {"values": 5000, "windows": 0.05, "length": 20_000}, Confidence.HINT),
    ],
)
def test_more_than_coincidence(
    share: float, copies: float, how: dict[str, Any], confidence: Confidence
) -> None:
    (finding,) = said(overlapping_splits, splits(share, copies, **how))
    assert isinstance(finding, Finding)
    assert finding.confidence is confidence
    assert "validation 3 is training 17" in finding.summary


def test_a_small_leak_is_a_warning() -> None:
    (finding,) = said(overlapping_splits, splits(0.05))
    assert isinstance(finding, Finding)
    assert finding.severity is Severity.WARNING


def test_says_what_a_part_tells_of_the_whole() -> None:
    run = splits(0.04, valid=2000, train=2000, length=50_000)
    (finding,) = said(overlapping_splits, run)
    assert isinstance(finding, Finding)
    assert "100 %" in finding.summary


def test_nothing_read() -> None:
    run = run_of({DATASET_OVERLAP: {"inputs": []}, DATASET_DUPLICATES: {"train": [0.0]}})
    (verdict,) = said(overlapping_splits, run)
    assert isinstance(verdict, NotExamined)
