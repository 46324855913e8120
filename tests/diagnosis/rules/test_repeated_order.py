from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.repeated_order import repeated_order
from holter.record import Event, Run
from holter.record.events import LoaderSeen, PassOrder
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Severity
from holter.record.meta import Meta, ParameterSummary
from holter.record.signals import (
    DATA_BATCHES,
    INPUT_FINGERPRINT,
    INPUT_MEAN,
    INPUT_TOKENS,
    LOSS,
    TARGET_MEAN,
    TARGET_MIN,
    Signal,
)
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
    batches: int = 32,
    more: Mapping[Signal, np.ndarray] = MappingProxyType({}),
) -> Run:
    events = [Event(0, 0.0, LoaderSeen("loader 0", batches=batches, order=order))]
    events += [
        Event(32 * epoch + 31, 0.0, PassOrder("loader 0", batches, steps, *prints))
        for epoch, prints in enumerate(zip(inputs, labels, strict=False))
    ]
    signals = {DATA_BATCHES: {"loader 0": np.ones(128)}}
    signals |= {signal: {"": values} for signal, values in more.items()}
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
    (finding,) = found(repeated_order, run)
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.HINT
    assert "follow the order of the data" in finding.summary
    meta = Meta(parameters={"cell.weight_hh_l0": ParameterSummary((8, 8), "float32")})
    run = run_of({signal: dict(run[signal].items()) for signal in (DATA_BATCHES, INPUT_MEAN, LOSS)},
                 events=run.events, meta=meta)  # fmt: skip
    (note,) = said(repeated_order, run)
    assert isinstance(note, Normal)
    assert note.exception == "carried-state"


def test_a_shuffle_that_repeats_is_told_of_in_any_case() -> None:
    (finding,) = found(repeated_order, run_with(SAME, loss=FALLING))
    assert finding.confidence is Confidence.HINT


MIXED = np.random.default_rng(0).normal(size=128)


def test_mixed_data_that_are_not_shuffled_are_a_hint() -> None:
    run = run_with(SAME, order="sequential", means=MIXED, loss=FALLING)
    (finding,) = found(repeated_order, run)
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.INFO
    assert finding.explains == ()
    assert "shuffle=True" in finding.fix


def test_the_order_of_mixed_data_explains_no_failure() -> None:
    run = run_with(SAME, order="sequential", means=MIXED, loss=FALLING[::-1])
    (note,) = said(repeated_order, run)
    assert isinstance(note, Normal)
    assert note.exception == ""


@pytest.mark.parametrize("signal", [INPUT_TOKENS, TARGET_MIN])
def test_lengths_and_targets_tell_an_order_too(signal: Signal) -> None:
    run = run_with(SAME, order="sequential", means=MIXED, loss=FALLING, more={signal: ORDERED})
    (verdict,) = said(repeated_order, run)
    if signal is INPUT_TOKENS:  # in buckets
        assert isinstance(verdict, Normal)
        assert verdict.exception == NO_DAMAGE
    else:
        assert isinstance(verdict, Finding)
        assert verdict.severity is Severity.INFO


def test_the_mean_of_all_targets_so_far_tells_no_order() -> None:
    so_far = MIXED.cumsum() / np.arange(1, 129)
    run = run_with(SAME, order="sequential", means=MIXED, loss=FALLING, more={TARGET_MEAN: so_far})
    (finding,) = found(repeated_order, run)
    assert "not alike" in finding.summary


def by_hand(prints: np.ndarray, means: np.ndarray, loss: np.ndarray) -> Run:
    return run_of(
        {INPUT_FINGERPRINT: {"Net": prints}, INPUT_MEAN: {"Net": means}, LOSS: {"": loss}}
    )


def test_batches_that_a_script_makes_itself() -> None:
    order, falling = np.tile(np.arange(40.0), 5), 2.0 * 0.98 ** np.arange(200)
    waves = np.tile(np.sin(np.arange(40) / 6), 5)
    (finding,) = found(repeated_order, by_hand(order, waves, falling))
    assert finding.severity is Severity.INFO
    assert "160 of 160 batches repeat after 40 steps, without shuffling" in finding.summary
    assert finding.evidence[0].signal is INPUT_FINGERPRINT
    assert found(repeated_order, by_hand(order, waves, falling[::-1]))[0].severity > Severity.INFO
    mixed = np.tile(np.random.default_rng(0).normal(size=40), 5)
    (note,) = said(repeated_order, by_hand(order, mixed, falling))
    assert isinstance(note, Normal)


@pytest.mark.parametrize(
    "prints",
    [
        np.arange(200.0),
        np.random.default_rng(0).integers(40, size=200).astype(float),  # with replacement
        np.concatenate([np.random.default_rng(n).permutation(np.arange(40.0)) for n in range(5)]),
        np.tile(np.repeat(np.arange(2.0), 20), 5),  # few different ones
    ],
)
def test_other_batches_of_a_script_are_not_in_the_same_order(prints: np.ndarray) -> None:
    run = by_hand(prints, np.sin(np.arange(200) / 20), 2.0 * 0.98 ** np.arange(200))
    (verdict,) = said(repeated_order, run)
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize(
    ("order", "batches", "name"),
    [("sequential", 4, "few-batches"), ("", 32, "chosen-order")],
)
def test_orders_that_are_no_mistake(order: str, batches: int, name: str) -> None:
    (note,) = said(repeated_order, run_with(SAME, order=order, means=MIXED, batches=batches))
    assert isinstance(note, Normal)
    assert note.exception == name


def test_other_orders() -> None:
    assert [type(each) for each in said(repeated_order, run_with(OTHERS))] == [Clear]
    unknown = (None,) * 4  # batches that do not differ
    assert [type(each) for each in said(repeated_order, run_with(unknown, unknown))] == [Clear]


def test_passes_without_training_do_not_count() -> None:
    (verdict,) = said(repeated_order, run_with(SAME, steps=0))
    assert isinstance(verdict, NotExamined)
