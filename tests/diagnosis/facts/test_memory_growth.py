"""Growth of memory, and the variables that hold it."""

import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.memory import MemoryGrowth, graph_keepers, growth, memory_keepers, slope
from holter.record import Event, Run
from holter.record.events import PassBegan, ResultsKept
from holter.record.signals import GRAPH_KEPT, MEMORY_HELD, MEMORY_PROCESS
from synthetic import run_of, series

MB = 1e6
STEPS = np.arange(400)
NOISE = np.random.default_rng(0).normal(scale=2 * MB, size=len(STEPS))


def grown(values: np.ndarray, passes: tuple[int, ...] = ()) -> MemoryGrowth:
    events = [Event(at, 0.0, PassBegan("loader 0")) for at in passes]
    made = growth(Facts(run_of({MEMORY_PROCESS: {"": values}}, events=events)), MEMORY_PROCESS)
    assert not isinstance(made, str)
    return made


def test_a_leak_is_steady_and_has_its_slope() -> None:
    made = grown(300 * MB + 0.5 * MB * STEPS + NOISE)
    assert made.is_steady
    assert made.slope == pytest.approx(0.5 * MB, rel=0.05)
    assert made.total == pytest.approx(0.5 * MB * 280, rel=0.05)


@pytest.mark.parametrize(
    "values",
    [
        np.full(len(STEPS), 300 * MB) + NOISE,
        300 * MB + np.minimum(STEPS, 200) * MB + NOISE,  # a cache that fills and stops
        300 * MB + (STEPS > 250) * 100 * MB + NOISE,  # one allocation
        300 * MB - 0.2 * MB * STEPS + NOISE,
    ],
    ids=["flat", "fills", "jump", "falls"],
)
def test_what_is_no_leak(values: np.ndarray) -> None:
    assert not grown(values).is_steady


def test_a_few_wild_readings_change_nothing() -> None:
    values = 300 * MB + 0.5 * MB * STEPS
    values[::17] += 500 * MB
    made = grown(values)
    assert made.is_steady
    assert made.slope == pytest.approx(0.5 * MB, rel=0.1)


def test_the_first_pass_is_left_out_if_there_are_more() -> None:
    values = 300 * MB + np.minimum(STEPS, 190) * MB
    assert grown(values, passes=(0, 190, 380)).first == 190
    assert grown(values, passes=(0,)).passes == 0


def test_too_few_readings() -> None:
    run = run_of({MEMORY_PROCESS: {"": [1.0] * 20}})
    assert "needed" in str(growth(Facts(run), MEMORY_PROCESS))
    assert isinstance(growth(Facts(run_of({})), MEMORY_PROCESS), str)


def test_the_slope_of_readings_that_are_not_evenly_spaced() -> None:
    steps = np.array([0.0, 1, 2, 10, 50, 100, 400])
    assert slope(steps, 3 * steps) == pytest.approx(3)


def kept(counts: list[float], steps: list[int] | None = None) -> Run:
    event = Event(4, 0.0, ResultsKept("total", "train.py:7", "total += loss", True))
    return run_of({GRAPH_KEPT: {"total": series(counts, steps)}}, events=[event])


def test_a_sum_that_grows_by_one_term_a_step() -> None:
    (keeper,) = graph_keepers(kept([2, 3, 4, 5, 9, 10], [2, 3, 4, 5, 9, 10]))
    assert (keeper.variable, keeper.where, keeper.most) == ("total", "train.py:7", 10)
    assert keeper.per_step == pytest.approx(1)


def test_a_sum_that_is_reset_at_every_epoch_grows_all_the_same() -> None:
    counts = list(range(2, 30)) * 3
    steps = [n + 30 * epoch for epoch in range(3) for n in range(2, 30)]
    (keeper,) = graph_keepers(kept(counts, steps))
    assert keeper.most == 29


def test_the_losses_of_episodes_come_in_any_number() -> None:
    counts = np.random.default_rng(0).integers(10, 200, 60).tolist()
    assert graph_keepers(kept(counts)) == []


def test_containers_are_ordered_by_what_they_hold() -> None:
    events = [Event(4, 0.0, ResultsKept(name)) for name in ("small", "large")]
    tables = {"small": [1.0, 2.0], "large": [1e6, 2e6], "unknown": [1e9, 2e9]}
    run = run_of({MEMORY_HELD: tables}, events=events)
    assert [keeper.variable for keeper in memory_keepers(run)] == ["large", "small"]
