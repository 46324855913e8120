"""The rules on the samples that stream by, on runs made by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.collapsed_batch import collapsed_batch
from holter.diagnosis.rules.drifting_inputs import drifting_inputs
from holter.diagnosis.rules.duplicated_workers import duplicated_workers
from holter.diagnosis.rules.few_distinct_samples import few_distinct_samples
from holter.diagnosis.rules.misused_sampler_weights import misused_sampler_weights
from holter.record import Event, Run
from holter.record.events import LoaderSeen
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    DATASET_DUPLICATES,
    LOSS,
    STREAM_COLLAPSED,
    STREAM_DISTINCT,
    STREAM_MEAN,
    STREAM_READ,
    STREAM_SAMPLES,
    STREAM_SEEN,
    STREAM_STD,
    STREAM_TOKENS,
    STREAM_VALUES,
    Signal,
)
from synthetic import found, run_of, said, series

FALLING = 2.0 * 0.98 ** np.arange(200)
LOADER = LoaderSeen("loader 0", batches=32, batch_size=32, order="shuffled", samples=1024)


def stream(
    *,
    mean: Sequence[float] = (0.0,) * 5,
    std: Sequence[float] = (1.0,) * 5,
    distinct: float = 1024,
    read: float = 1024,
    samples: float = 1024,
    collapsed: float = 0.0,
    values: float = 1000,
    tokens: float | None = None,
    duplicates: float | None = None,
    seen: LoaderSeen = LOADER,
    loss: np.ndarray = FALLING,
) -> Run:
    passes = len(mean)
    at = [(40 * (n + 1)) - 1 for n in range(passes)]
    columns: dict[Signal, Sequence[float]] = {
        STREAM_SAMPLES: [samples] * passes,
        STREAM_READ: [read] * passes,
        STREAM_DISTINCT: [distinct] * passes,
        STREAM_SEEN: [distinct] * passes,
        STREAM_COLLAPSED: [collapsed] * passes,
        STREAM_VALUES: [values] * passes,
        STREAM_MEAN: mean,
        STREAM_STD: std,
        **({} if tokens is None else {STREAM_TOKENS: [tokens] * passes}),
    }
    signals = {signal: {"loader 0": series(each, at)} for signal, each in columns.items()}
    if duplicates is not None:
        signals[DATASET_DUPLICATES] = {"train": series([duplicates], [0])}
    return run_of({**signals, LOSS: {"": series(loss)}}, events=[Event(0, 0.0, seen)])


def test_the_same_samples_have_the_same_moments() -> None:
    (verdict,) = said(drifting_inputs, stream(mean=(0.0, 0.01, -0.01, 0.02, 0.0)))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    "run",
    [
        stream(std=(1.0, 0.5, 0.25, 0.12, 0.06)),
        stream(std=(1.0, 8.0, 8.1, 8.0, 8.1)),  # a scaler that settles
        stream(mean=(0.0, 1.0, 2.0, 3.0, 4.0)),
    ],
)
def test_a_large_drift_is_told_of_in_any_case(run: Run) -> None:
    (finding,) = found(drifting_inputs, run)
    assert finding.confidence is Confidence.LIKELY


def test_a_moderate_drift_needs_a_run_that_failed() -> None:
    std = (1.0, 1.2, 1.4, 1.6, 1.8)
    (note,) = said(drifting_inputs, stream(std=std))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE
    (finding,) = found(drifting_inputs, stream(std=std, loss=FALLING[::-1]))
    assert finding.confidence is Confidence.HINT


def test_moments_that_go_up_and_down_are_no_drift() -> None:
    assert not found(drifting_inputs, stream(std=(1.0, 9.0, 1.0, 9.0, 4.0)))


def test_a_part_of_the_samples_varies_by_chance() -> None:
    mean = (0.0, 0.2, 0.4, 0.5, 0.7)
    few = stream(mean=mean, read=40, loss=FALLING[::-1])
    assert not found(drifting_inputs, few)
    assert found(drifting_inputs, stream(mean=mean, loss=FALLING[::-1]))


def test_the_script_decides_the_samples() -> None:
    seen = LoaderSeen("loader 0", batches=32, batch_size=32, order="", samples=1024)
    (note,) = said(drifting_inputs, stream(mean=(0.0, 1.0, 2.0, 3.0, 4.0), seen=seen))
    assert isinstance(note, Normal)
    assert note.exception == "chosen-order"


def test_few_samples_of_a_run_that_failed() -> None:
    (finding,) = found(few_distinct_samples, stream(distinct=32, loss=FALLING[::-1]))
    assert "32 distinct samples among 1024" in finding.summary
    (note,) = said(few_distinct_samples, stream(distinct=32))
    assert isinstance(note, Normal)


@pytest.mark.parametrize(
    ("distinct", "read", "samples"),
    [(650, 1024, 1024), (1024, 8192, 8192), (200, 200, 1024)],
    ids=["with replacement", "many times the data set", "read in part"],
)
def test_samples_may_repeat(distinct: float, read: float, samples: float) -> None:
    run = stream(distinct=distinct, read=read, samples=samples, loss=FALLING[::-1])
    (verdict,) = said(few_distinct_samples, run)
    assert isinstance(verdict, Clear)


def test_codes_repeat_by_nature() -> None:
    (note,) = said(few_distinct_samples, stream(distinct=16, values=2, loss=FALLING[::-1]))
    assert isinstance(note, Normal)
    assert note.exception == "coded-inputs"


@pytest.mark.parametrize(
    ("values", "tokens", "reported"),
    [(40, 12, True), (30, 20, True), (97, 2, False), (2, 8, False)],
    ids=["sentences", "letters", "two numbers", "bits"],
)
def test_tokens_repeat_by_nature_if_they_make_few_samples(
    values: float, tokens: float, reported: bool
) -> None:
    run = stream(distinct=10, values=values, tokens=tokens, collapsed=1.0, loss=FALLING[::-1])
    assert bool(found(few_distinct_samples, run)) is reported
    assert bool(found(collapsed_batch, run)) is reported


@pytest.mark.parametrize(("drawable", "reported"), [(5, True), (1024, False), (None, False)])
def test_weights_of_a_sampler(drawable: int | None, reported: bool) -> None:
    seen = LoaderSeen("loader 0", batches=32, order="shuffled", samples=1024, drawable=drawable)
    findings = found(misused_sampler_weights, stream(seen=seen))
    assert bool(findings) is reported
    assert all(finding.confidence is Confidence.CERTAIN for finding in findings)


@pytest.mark.parametrize(
    ("workers", "distinct", "reported"),
    [(4, 256, True), (2, 256, False), (4, 1024, False), (1, 1024, False)],
)
def test_workers_that_repeat_one_another(workers: int, distinct: float, reported: bool) -> None:
    seen = LoaderSeen("loader 0", workers=workers, iterable=True)
    assert bool(found(duplicated_workers, stream(seen=seen, distinct=distinct))) is reported


@pytest.mark.parametrize(
    ("duplicates", "reported"),
    [(0.0, True), (1.0, False), (None, False)],
    ids=["drawn in each worker", "held twice", "not examined"],
)
def test_workers_of_a_data_set_with_indices(duplicates: float | None, reported: bool) -> None:
    seen = LoaderSeen("loader 0", workers=2, samples=1024)
    run = stream(seen=seen, distinct=512, duplicates=duplicates)
    assert bool(found(duplicated_workers, run)) is reported


def test_passes_that_were_not_read_whole_tell_nothing_of_workers() -> None:
    seen = LoaderSeen("loader 0", workers=4, iterable=True)
    (verdict,) = said(duplicated_workers, stream(seen=seen, distinct=256, read=512))
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize(
    ("collapsed", "values", "kind"),
    [(1.0, 1000, "Finding"), (0.2, 1000, "Clear"), (1.0, 2, "Normal")],
)
def test_batches_of_one_sample(collapsed: float, values: float, kind: str) -> None:
    (verdict,) = said(collapsed_batch, stream(collapsed=collapsed, values=values))
    assert type(verdict).__name__ == kind
