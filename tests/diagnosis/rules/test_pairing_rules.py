"""The rules on labels that do not belong to their inputs, on runs made by hand."""

import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.independent_labels import independent_labels
from holter.diagnosis.rules.misaligned_labels import misaligned_labels
from holter.diagnosis.rules.mispaired_batches import mispaired_batches
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    DATASET_ALIGNMENT,
    DATASET_DEPENDENCE,
    DATASET_MISPAIRED,
    LOSS,
    LOSS_ROOT_SHARE,
    OUTPUT_SIZE,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
)
from synthetic import found, run_of, said

ENTROPY = float(np.log(4))
LEVEL = ENTROPY * (1 + 0.01 * np.random.default_rng(0).normal(size=200))
FALLING = 1.4 * 0.98 ** np.arange(200)


def run(loss: np.ndarray, *values: float, alignment: tuple[float, ...] = ()) -> Run:
    signals = {
        LOSS: {"": loss},
        LOSS_ROOT_SHARE: {"": np.ones(200)},
        OUTPUT_SIZE: {"cross_entropy": np.ones(200)},
        TARGET_ENTROPY: {"cross_entropy": np.full(200, ENTROPY)},
        TARGET_LARGEST_CLASS_FRACTION: {"cross_entropy": np.full(200, 0.25)},
        **({DATASET_DEPENDENCE: {"train": list(values)}} if values else {}),
        **({DATASET_ALIGNMENT: {"train": list(alignment)}} if alignment else {}),
    }
    return run_of(signals)  # type: ignore[arg-type]


def test_labels_that_nothing_predicts_where_nothing_was_learned() -> None:
    (finding,) = found(independent_labels, run(LEVEL, 0.01, 0.02, 0.004, 0.006))
    assert finding.confidence is Confidence.HINT
    assert finding.preview


@pytest.mark.parametrize(
    "values",
    [(0.5, 0.02, 0.004, 0.006), (0.01, 0.02, 0.2, 0.006)],
    ids=["neighbours agree", "a column tells"],
)
def test_labels_that_depend_on_inputs(values: tuple[float, ...]) -> None:
    (verdict,) = said(independent_labels, run(LEVEL, *values))
    assert isinstance(verdict, Clear)


def test_a_model_that_learned_knows_better() -> None:
    (note,) = said(independent_labels, run(FALLING, 0.01, 0.02, 0.004, 0.006))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_data_sets_that_were_not_read() -> None:
    (verdict,) = said(independent_labels, run(LEVEL))
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize(
    ("train", "valid", "reported"), [(0.0, 0.5, 1), (0.5, 0.5, 2), (0.0, 0.0, 0)]
)
def test_batches_that_are_mispaired(train: float, valid: float, reported: int) -> None:
    made = run_of({DATASET_MISPAIRED: {"train": [train], "valid": [valid]}})
    (verdict,) = said(mispaired_batches, made)
    assert isinstance(verdict, Finding if reported else Clear)
    if isinstance(verdict, Finding):
        assert len(verdict.evidence) == reported


@pytest.mark.parametrize(
    ("loss", "told", "kind"),
    [
        (LEVEL, (0.01, 0.0, 0.05, 0.8, 0.02), "Finding"),
        (FALLING, (0.01, 0.0, 0.05, 0.8, 0.02), "Normal"),  # it learned all the same
        (LEVEL, (0.01, 0.0, 0.8, 0.3, 0.02), "Clear"),
        (LEVEL, (0.01, 0.0, 0.02, 0.1, 0.02), "Clear"),  # nothing tells much
    ],
)
def test_labels_of_another_position(loss: np.ndarray, told: tuple[float, ...], kind: str) -> None:
    (verdict,) = said(misaligned_labels, run(loss, alignment=told))
    assert type(verdict).__name__ == kind
