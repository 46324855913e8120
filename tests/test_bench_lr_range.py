"""The comparison of learning-rate finders: workloads that train, sums that add up."""

import math
from dataclasses import replace

import pytest

from bench.lr_range.measuring import HOLTER, SWEEPS_ONLY, Row, as_json, from_json
from bench.lr_range.report import as_low_as_any_peer, noise, render
from bench.lr_range.workloads import WORKLOADS, task

ROW = Row(
    workload="a",
    noisy=False,
    seed=0,
    start=2.0,
    rates={HOLTER: 1e-2, SWEEPS_ONLY: 2e-2, "peer": 1e-3, "other": None},
    scores={HOLTER: 1.01, SWEEPS_ONLY: 1.2, "peer": 1.0, "other": math.inf},
    again=[1.03, 0.99],
    steps={HOLTER: 1000},
)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_train(name: str, noisy: bool) -> None:
    made = task(name, 0, noisy=noisy)
    assert made.optimizer.param_groups[0]["lr"] == pytest.approx(1e-6)
    setup = made.setup()
    assert all(math.isfinite(setup.step(batch)) for batch in setup.batches(2))
    assert made.held


def test_seeds_are_other_data() -> None:
    one, two, same = (task("VAE, Adam", seed, noisy=False).held[0][0] for seed in (0, 1, 0))
    assert not one.equal(two)
    assert one.equal(same)


def test_what_is_within_noise_of_the_best_peer() -> None:
    assert noise([ROW]) == pytest.approx(2 * 2**0.5 * 0.02)
    assert as_low_as_any_peer([ROW]) == {("a", False): True}
    worse = replace(ROW, scores=ROW.scores | {HOLTER: 1.2}, again=[1.21, 1.22])
    assert as_low_as_any_peer([worse]) == {("a", False): False}


def test_the_tables_tell_who_was_lowest() -> None:
    lines = render([ROW, replace(ROW, noisy=True)]).splitlines()
    by_rule = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in lines}
    assert by_rule["peer"][0] == "2"
    assert by_rule[HOLTER][:2] == ["0", "**2 of 2**"]
    assert by_rule["other"][7] == "2 of 2"
    assert "**1**" in by_rule["a"]


def test_results_are_kept_as_they_are() -> None:
    rows, head = from_json(as_json([ROW], {"date": "today"}))
    assert rows == [ROW]
    assert head == {"date": "today"}
