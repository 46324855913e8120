import math

import pytest

from holter.diagnosis.rules.nonfinite_samples import nonfinite_samples
from holter.record import Event, Run
from holter.record.events import PassBegan, SamplesFound
from holter.record.findings import Clear, Confidence, Finding, Normal, Severity
from holter.record.signals import (
    DATA_BATCH_SIZE,
    DATASET_EXAMINED,
    DATASET_NONFINITE,
    DATASET_NONFINITE_LOSS,
    LOSS,
    Signal,
)
from synthetic import found, run_of, said


def samples(lost: float | None = None, **counts: float) -> Run:
    named = {name.replace("_", " "): [count] for name, count in counts.items()}
    signals: dict[Signal, dict[str, list[float]]] = {
        DATASET_EXAMINED: {"train": [500], "valid": [100]},
        DATASET_NONFINITE: {"train inputs": [0.0], **named},
    }
    if lost is not None:
        signals[DATASET_NONFINITE_LOSS] = {"train": [lost]}
    named_samples = SamplesFound("nonfinite inputs", "train", indices=(17, 40))
    return run_of(signals, events=[Event(0, 0.0, named_samples)])


def test_all_finite() -> None:
    verdicts = said(nonfinite_samples, samples())
    assert [type(each) for each in verdicts] == [Clear, Clear]


def test_the_loss_is_lost_with_them() -> None:
    (finding,) = found(nonfinite_samples, samples(1.0, train_inputs=3, train_targets=1))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.severity is Severity.ERROR
    assert "(17, 40, ...)" in finding.summary
    assert "targets of 1 of 500" in finding.summary


def test_a_finite_loss_is_harmless() -> None:
    first, _ = said(nonfinite_samples, samples(0.0, train_inputs=3))
    assert isinstance(first, Normal)
    assert first.exception == "no-damage"


def test_no_such_batch_was_met() -> None:
    (finding,) = found(nonfinite_samples, samples(train_inputs=3))
    assert finding.confidence is Confidence.HINT


def test_validation_alone() -> None:
    first, second = said(nonfinite_samples, samples(valid_inputs=1))
    assert isinstance(first, Clear)
    assert isinstance(second, Finding)


@pytest.mark.parametrize(("last", "harmless"), [(0.1, True), (math.nan, False)])
def test_a_training_that_learned_from_all_samples_masks_them(last: float, harmless: bool) -> None:
    steps = 60
    run = run_of(
        {
            DATASET_EXAMINED: {"train": [500]},
            DATASET_NONFINITE: {"train targets": [3.0]},
            LOSS: {"": [2.0 * 0.9**step for step in range(steps - 20)] + [last] * 20},
            DATA_BATCH_SIZE: {"loader": [16.0] * steps},
        },
        events=[Event(step, 0.0, PassBegan("loader")) for step in (0, steps // 2)],
    )
    (verdict,) = said(nonfinite_samples, run)
    assert isinstance(verdict, Normal if harmless else Finding)
