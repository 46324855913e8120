import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.repeated_order import repeated_order
from holter.record import Event, Run
from holter.record.events import LoaderSeen, PassOrder
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import DATA_BATCHES, INPUT_MEAN, LOSS
from synthetic import found, run_of, said

SAME, OTHERS = (7, 7, 7, 7), (7, 8, 9, 10)


def run_with(
    inputs: tuple[int | None, ...],
    labels: tuple[int | None, ...] = OTHERS,
    *,
    order: str = "shuffled",
    steps: int = 31,
    means: np.ndarray | None = None,
    loss: np.ndarray | None = None,
) -> Run:
    events = [Event(0, 0.0, LoaderSeen("loader 0", batches=32, order=order))]
    events += [
        Event(32 * epoch + 31, 0.0, PassOrder("loader 0", 32, steps, *prints))
        for epoch, prints in enumerate(zip(inputs, labels, strict=False))
    ]
    signals = {DATA_BATCHES: {"loader 0": np.ones(128)}}
    if means is not None:
        signals[INPUT_MEAN] = {"Net": means}
    if loss is not None:
        signals[LOSS] = {"": loss}
    return run_of(signals, events=events)


def test_the_same_shuffle_again() -> None:
    (finding,) = found(repeated_order, run_with(SAME))
    assert finding.onset == 63
    assert "3 of 3" in finding.summary
    assert "set_epoch" in finding.fix


def test_labels_tell_where_inputs_are_augmented() -> None:
    assert found(repeated_order, run_with(OTHERS, SAME))


ORDERED = np.sin(np.arange(128) / 20)
FALLING = 2.0 * 0.98 ** np.arange(128)


def test_ordered_data_that_are_not_shuffled() -> None:
    run = run_with(SAME, order="sequential", means=ORDERED, loss=FALLING[::-1])
    (finding,) = found(repeated_order, run)
    assert [evidence.signal for evidence in finding.evidence] == [DATA_BATCHES, INPUT_MEAN, LOSS]


def test_ordered_data_that_were_learned_from() -> None:
    run = run_with(SAME, order="sequential", means=ORDERED, loss=FALLING)
    (note,) = said(repeated_order, run)
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_a_shuffle_that_repeats_is_told_of_in_any_case() -> None:
    (finding,) = found(repeated_order, run_with(SAME, loss=FALLING))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(("order", "name"), [("sequential", "mixed-data"), ("", "chosen-order")])
def test_orders_that_are_no_mistake(order: str, name: str) -> None:
    means = np.random.default_rng(0).normal(size=128)
    (note,) = said(repeated_order, run_with(SAME, order=order, means=means))
    assert isinstance(note, Normal)
    assert note.exception == name


def test_other_orders() -> None:
    assert [type(each) for each in said(repeated_order, run_with(OTHERS))] == [Clear]
    unknown = (None,) * 4  # batches that do not differ
    assert [type(each) for each in said(repeated_order, run_with(unknown, unknown))] == [Clear]


def test_passes_without_training_do_not_count() -> None:
    (verdict,) = said(repeated_order, run_with(SAME, steps=0))
    assert isinstance(verdict, NotExamined)
