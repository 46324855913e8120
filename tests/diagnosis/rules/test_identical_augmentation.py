import pytest

from holter.diagnosis.rules.identical_augmentation import identical_augmentation
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, NotExamined
from holter.record.signals import (
    REFETCH_INPUTS,
    REFETCH_OWN,
    WORKERS,
    WORKERS_ALIKE,
    WORKERS_DRAWS,
    WORKERS_EPOCHS_ALIKE,
    WORKERS_INIT,
    WORKERS_PERSISTENT,
    Signal,
)
from synthetic import run_of, said


def loader(
    differ: float = 1.0,
    workers: int = 2,
    *,
    own: float = 1.0,
    init: float = 0.0,
    persistent: float = 0.0,
    alike: float | None = None,
    epochs: float = 0.0,
) -> Run:
    signals: dict[Signal, dict[str, list[float]]] = {
        REFETCH_INPUTS: {"train": [differ]},
        REFETCH_OWN: {"train": [own]},
        WORKERS: {"train": [workers]},
        WORKERS_INIT: {"train": [init]},
        WORKERS_PERSISTENT: {"train": [persistent]},
    }
    if alike is not None:
        signals[WORKERS_DRAWS] = {"train": [24]}
        signals[WORKERS_ALIKE] = {"train": [alike]}
        signals[WORKERS_EPOCHS_ALIKE] = {"train": [epochs]}
    return run_of(signals)


@pytest.mark.parametrize(
    "run",
    [
        loader(0.0),
        loader(workers=0),
        loader(own=0.0),
        loader(alike=0.0),
        loader(alike=0.5, epochs=0.6),  # flips are equal by chance
        loader(own=0.0, init=1.0, alike=0.0),
        loader(persistent=1.0, alike=0.0, epochs=1.0),
        loader(workers=1, alike=1.0, epochs=0.0),
    ],
)
def test_different_everywhere(run: Run) -> None:
    (verdict,) = said(identical_augmentation, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("run", "where"),
    [
        (loader(alike=1.0, epochs=1.0), "in all workers and in every epoch"),
        (loader(alike=1.0, epochs=1.0, persistent=1.0), "in all workers:"),
        (loader(alike=1.0, epochs=1.0, workers=1), "in every epoch:"),
        (loader(own=0.0, init=1.0, alike=0.0, epochs=1.0), "in every epoch:"),
        (loader(0.5, alike=1.0, epochs=1.0), "in all workers and in every epoch"),
    ],
)
def test_the_same(run: Run, where: str) -> None:
    (finding,) = said(identical_augmentation, run)
    assert isinstance(finding, Finding)
    assert finding.confidence is Confidence.CERTAIN
    assert where in finding.summary


@pytest.mark.parametrize(
    "run",
    [
        loader(),  # no workers were started
        loader(0.1, alike=1.0, epochs=1.0),  # rarely random: may be chance
        run_of({REFETCH_INPUTS: {"valid": [1.0]}, WORKERS: {"train": [2.0]}}),
    ],
)
def test_cannot_tell(run: Run) -> None:
    (verdict,) = said(identical_augmentation, run)
    assert isinstance(verdict, NotExamined)
