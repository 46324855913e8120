import numpy as np
import pytest

from holter.diagnosis.rules.sorted_batches import sorted_batches
from holter.record import Event, Run
from holter.record.events import PassBegan
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    DATA_BATCH_SIZE,
    LOSS,
    TARGET_BATCH_ENTROPY,
    TARGET_CLASSES,
    TARGET_COUNT,
    TARGET_ENTROPY,
)
from synthetic import found, run_of, said, series


def given(
    batch: list[float],
    *,
    whole: float = 1.386,
    classes: float | None = 4,
    size: float = 64,
    loader: float | None = 64,
    losses: dict[str, list[float]] | None = None,
) -> Run:
    steps = len(batch)
    signals = {
        TARGET_BATCH_ENTROPY: {"cross_entropy": batch},
        TARGET_ENTROPY: {"cross_entropy": [whole] * steps},
        TARGET_COUNT: {"cross_entropy": [size] * steps},
        LOSS: losses or {"": [1.0] * steps},
    }
    if classes is not None:
        signals[TARGET_CLASSES] = {"cross_entropy": [classes] * steps}
    if loader is not None:
        signals[DATA_BATCH_SIZE] = {"loader": [loader] * steps}
    return run_of(signals)


def test_one_class_a_batch() -> None:
    (finding,) = found(sorted_batches, given([0.0] * 28 + [0.6] * 4))
    assert finding.confidence is Confidence.LIKELY
    assert "1.39" in finding.summary


def test_is_a_hint_where_samples_are_not_counted() -> None:
    (finding,) = found(sorted_batches, given([0.0] * 32, loader=None))
    assert finding.confidence is Confidence.HINT


def test_two_classes_of_single_logits() -> None:
    assert found(sorted_batches, given([0.0] * 32, whole=0.69, classes=None))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_silent_on_mixed_batches(share: float) -> None:
    (verdict,) = said(sorted_batches, given([share * 1.36] * 32))
    assert isinstance(verdict, Clear)


def test_batches_of_two_have_one_class_half_of_the_time() -> None:
    run = given([0.0, 0.693] * 40, whole=0.693, classes=2, size=2, loader=2)
    (verdict,) = said(sorted_batches, run)
    assert isinstance(verdict, Clear)


def tasks(steps: int = 200, *, each: int = 40, again: bool = False) -> Run:
    """Two classes at a time; a new loader for each task, or the same one."""
    whole = np.log(2 * (1 + np.arange(steps) // each))
    number = 0 * (np.arange(steps) // each) if again else np.arange(steps) // each
    return run_of(
        {
            LOSS: {"": np.ones(steps)},
            TARGET_BATCH_ENTROPY: {"cross_entropy": 0.68 - 0.02 * (np.arange(steps) % 2)},
            TARGET_ENTROPY: {"cross_entropy": whole},
            TARGET_CLASSES: {"cross_entropy": np.exp(whole)},
            TARGET_COUNT: {"cross_entropy": np.full(steps, 64.0)},
            DATA_BATCH_SIZE: {
                f"loader {one}": series(
                    np.full(int((number == one).sum()), 64.0), np.flatnonzero(number == one)
                )
                for one in np.unique(number)
            },
        },
        events=[
            Event(at, 0.0, PassBegan(f"loader {number[at]}"))
            for at in ((0,) if again else (0, 40, 80, 120))
        ],
    )


def test_a_pass_over_the_data_that_has_few_classes_as_well_is_a_task_of_its_own() -> None:
    (finding,) = found(sorted_batches, tasks())
    assert finding.confidence is Confidence.HINT
    (finding,) = found(sorted_batches, tasks(again=True))
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(("spread", "applies"), [(0.0, True), (0.3, False)])
def test_class_sampler(spread: float, applies: bool) -> None:
    batches = np.log(4) + spread * np.linspace(-1, 1, 50)
    (verdict,) = said(sorted_batches, given(list(batches), whole=np.log(50), classes=50))
    assert isinstance(verdict, Normal if applies else Finding)
    assert not isinstance(verdict, Normal) or verdict.exception == "class-sampler"


@pytest.mark.parametrize(("labels", "applies"), [(24, True), (1.5, False)])
def test_many_labels_per_sample(labels: float, applies: bool) -> None:
    (verdict,) = said(sorted_batches, given([0.0] * 32, size=64 * labels))
    assert isinstance(verdict, Normal if applies else Finding)
    assert not isinstance(verdict, Normal) or verdict.exception == "many-labels-per-sample"


def test_fewer_labels_than_samples_make_a_hint() -> None:
    (finding,) = found(sorted_batches, given([0.0] * 32, size=64, loader=256))
    assert finding.confidence is Confidence.HINT


def test_batches_without_a_target_are_left_out() -> None:
    (verdict,) = said(sorted_batches, given([1.3, np.nan] * 30))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("whole", "classes", "size"),
    [
        (0.05, 2, 64),  # barely any of the second class
        (6.9, 1000, 16),  # more classes than a batch can hold
        (0.69, 2, 1),  # a bag at a time
    ],
)
def test_shuffled_batches_have_too_little_entropy(
    whole: float, classes: float, size: float
) -> None:
    run = given([0.0] * 50, whole=whole, classes=classes, size=size, loader=size)
    (verdict,) = said(sorted_batches, run)
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize(
    ("losses", "applies"),
    [
        ({"critic": [1.0] * 50, "generator": [1.0] * 50}, True),
        ({"": [1.0, -1.0] * 25}, False),  # a sign says nothing about the order of the data
    ],
)
def test_adversaries(losses: dict[str, list[float]], applies: bool) -> None:
    (verdict,) = said(sorted_batches, given([0.0] * 50, losses=losses))
    assert isinstance(verdict, Normal if applies else Finding)
    assert not isinstance(verdict, Normal) or verdict.exception == "adversaries"


def test_too_short() -> None:
    (verdict,) = said(sorted_batches, given([0.0] * 19))
    assert isinstance(verdict, NotExamined)
