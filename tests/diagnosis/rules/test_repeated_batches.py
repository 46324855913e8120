from collections.abc import Sequence

import numpy as np
import pytest

from holter.diagnosis.rules.repeated_batches import repeated_batches
from holter.record import Event, Run, Series
from holter.record.events import LoaderSeen, PassMeasured
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    DATA_BATCHES,
    INPUT_FINGERPRINT,
    TARGET_BATCH_ENTROPY,
    TARGET_COUNT,
    TARGET_MAX,
    VAL_INPUT_FINGERPRINT,
    Signal,
)
from synthetic import found, run_of, said, series
from validations import FUNCTION, validated

STEPS = 200


def given(
    prints: Sequence[float] | Series,
    *,
    batches: int | None = 32,
    shuffled: bool = False,
    drawn: int = STEPS,
    targets: Sequence[float] | None = None,
    others: dict[str, Sequence[float]] | None = None,
) -> Run:
    signals: dict[Signal, dict[str, Sequence[float] | Series]] = {
        INPUT_FINGERPRINT: {"Net": prints, **(others or {})},
        DATA_BATCHES: {"loader": [1.0] * drawn},
    }
    if targets is not None:
        signals[TARGET_BATCH_ENTROPY] = {"cross_entropy": targets}
    seen = LoaderSeen("loader", batches=batches, shuffled=shuffled)
    return run_of(signals, events=[Event(0, 0.0, seen)])


def test_always_the_first_batch() -> None:
    (finding,) = found(repeated_batches, given([7.0] * STEPS, targets=[1.3] * STEPS))
    assert finding.confidence is Confidence.CERTAIN
    assert "1 different batch " in finding.summary
    assert "32" in finding.summary


@pytest.mark.parametrize("targets", [None, [0.0] * STEPS])
def test_is_a_hint_where_nothing_is_known_of_the_targets(targets: list[float] | None) -> None:
    (finding,) = found(repeated_batches, given([7.0, 8.0, 9.0] * 60, targets=targets))
    assert finding.confidence is Confidence.HINT


def test_a_small_loader() -> None:
    assert found(repeated_batches, given([7.0] * STEPS, batches=5))


def test_passes_over_the_loader() -> None:
    (verdict,) = said(repeated_batches, given([float(each % 32) for each in range(STEPS)]))
    assert isinstance(verdict, Clear)


def test_four_of_thirty_two_are_not_few_enough() -> None:
    assert not found(repeated_batches, given([1.0, 2.0, 3.0, 4.0] * 50))


@pytest.mark.parametrize("shuffled", [False, True])
def test_sampled_steps_may_meet_the_same_batch_each_time(shuffled: bool) -> None:
    steps = range(0, 32 * 100, 32)
    run = given(series([7.0] * 100, steps), batches=32, shuffled=shuffled)
    assert bool(found(repeated_batches, run)) is shuffled


def test_a_whole_graph_is_the_input_of_every_step() -> None:
    run = given([7.0] * STEPS, targets=[1.0 + each / STEPS for each in range(STEPS)])
    (note,) = said(repeated_batches, run)
    assert isinstance(note, Normal)
    assert note.exception == "changing-targets"


def test_one_of_several_models_may_be_given_the_same() -> None:
    run = given([7.0] * STEPS, others={"Other": [float(each % 32) for each in range(STEPS)]})
    assert not found(repeated_batches, run)


@pytest.mark.parametrize(
    "run",
    [
        given([7.0] * STEPS, drawn=1),  # one batch is overfitted on purpose
        given([7.0] * STEPS, batches=None),
        given([7.0] * STEPS, batches=1),
        given([7.0] * 19),
        given([np.nan] * STEPS),
        run_of({INPUT_FINGERPRINT: {"Net": [7.0] * STEPS}}),  # all data at once
    ],
)
def test_not_examined(run: Run) -> None:
    (verdict,) = said(repeated_batches, run)
    assert isinstance(verdict, NotExamined)


def test_targets_of_numbers_count_as_well() -> None:
    seen = LoaderSeen("loader", batches=32, shuffled=True)
    run = run_of(
        {
            INPUT_FINGERPRINT: {"Net": [7.0] * STEPS},
            DATA_BATCHES: {"loader": [1.0] * STEPS},
            TARGET_MAX: {"mse_loss": [float(each) for each in range(STEPS)]},
        },
        events=[Event(0, 0.0, seen)],
    )
    assert not found(repeated_batches, run)


def by_hand(
    prints: Sequence[float] = (7.0,) * 160,
    *,
    held_out: int = 2560,
    validation: np.ndarray | None = None,
    targets: np.ndarray | None = None,
    validated_on: float = 3.0,
) -> Run:
    """A training whose script slices its batches: 320 targets a step, and a loss near 0.1."""
    passes = np.arange(19, 160, 20)
    validation = np.linspace(2.5, 4, 8) if validation is None else validation
    targets = np.full(160, 2.2) if targets is None else targets
    what = PassMeasured(FUNCTION, held_out)
    return validated(
        np.linspace(2, 0.1, 8),
        validation,
        val_accuracy=np.full(8, 0.5),
        more={
            INPUT_FINGERPRINT: {"Net": series(prints)},
            VAL_INPUT_FINGERPRINT: {"Net": series([validated_on] * 8, passes)},
            TARGET_COUNT: {FUNCTION: series(np.full(160, 320.0))},
            TARGET_BATCH_ENTROPY: {FUNCTION: series(targets)},
        },
        events=[Event(159, 0.0, what)],
    )


@pytest.mark.parametrize("prints", [(7.0,) * 160, (7.0, 8.0) * 80])
def test_batches_sliced_by_hand_that_repeat(prints: Sequence[float]) -> None:
    (finding,) = found(repeated_batches, by_hand(prints))
    assert finding.confidence is Confidence.LIKELY
    assert "2560" in finding.summary


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (by_hand(held_out=600), NotExamined),  # all data at once
        (by_hand(validated_on=7.0), NotExamined),  # a whole graph
        (by_hand(validation=np.linspace(2, 0.2, 8)), Normal),  # carries over
        (by_hand(targets=np.linspace(2, 2.3, 160)), Normal),
        (by_hand(tuple(map(float, range(160)))), Clear),
    ],
)
def test_batches_sliced_by_hand(run: Run, kind: type) -> None:
    (verdict,) = said(repeated_batches, run)
    assert isinstance(verdict, kind)
