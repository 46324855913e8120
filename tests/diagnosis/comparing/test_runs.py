"""Two runs compared: made by hand, without torch."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from holter.diagnosis.comparing.runs import Comparison, compare
from holter.record import Run
from holter.record.meta import Environment, Git, Meta
from holter.record.signals import (
    GRAD_NORM,
    INPUT_MEAN,
    LOSS,
    LR,
    TIME_DATA_WAIT,
    WEIGHT_NORM,
    Signal,
)
from holter.reports.comparisons.diff import headline, render, render_json
from synthetic import run_of, series

_FALL = np.exp(-np.arange(400) / 100) + 1


def noisy(seed: int, level: float = 0.0, since: int = 0) -> np.ndarray:
    losses = _FALL + 0.05 * np.random.default_rng(seed).standard_normal(len(_FALL))
    losses[since:] += level
    return losses


def with_(run: Run, **changes: object) -> Run:
    return replace(run, meta=replace(run.meta, **changes))


def of(losses: np.ndarray | list[float], more: Mapping[Signal, Any] = MappingProxyType({})) -> Run:
    return run_of({LOSS: {"": losses}, **more})


def first(comparison: Comparison) -> list[tuple[int, Signal, str]]:
    return [(each.step, each.signal, each.owner) for each in comparison.first]


def test_equal_runs_are_equal_nan_included() -> None:
    losses = noisy(0)
    losses[17] = np.nan
    compared = compare(of(losses), of(losses.copy()))
    assert compared.is_equal
    assert not compared.departures
    assert "equal bit for bit in 1 signal over 400 steps" in headline(compared)


def test_the_first_step_and_signal_are_named_in_order_of_phase() -> None:
    losses = noisy(0)
    other = losses.copy()
    other[300] = np.nextafter(np.float32(other[300]), np.float32(9))
    norms = {"a": [1.0] * 400, "b": [1.0] * 400}
    changed = {"a": [1.0] * 400, "b": [1.0] * 300 + [2.0] * 100}
    compared = compare(
        of(losses, {GRAD_NORM: norms, INPUT_MEAN: {"": [0.5] * 400}}),
        of(other, {GRAD_NORM: changed, INPUT_MEAN: {"": [0.5] * 400}}),
    )
    assert first(compared) == [(300, LOSS, ""), (300, GRAD_NORM, "b")]
    assert "batches are equal" in compared.meaning
    assert "equal for 300 steps" in headline(compared)


def test_nothing_is_said_of_phases_that_were_not_read() -> None:
    assert compare(of([1.0, 2.0]), of([1.0, 3.0])).meaning == ""
    data = {"": [0.0, 1.0]}, {"": [0.0, 2.0]}
    a, b = (of([1.0, 1.0], {INPUT_MEAN: each}) for each in data)
    assert "batches differ" in compare(a, b).meaning


def test_only_steps_that_both_have_are_compared() -> None:
    a = of([1.0] * 5, {WEIGHT_NORM: {"w": series([1.0, 2.0], [0, 2])}})
    b = of([1.0] * 5, {WEIGHT_NORM: {"w": series([1.0, 9.0], [0, 3])}})
    assert compare(a, b).is_equal


def test_times_are_not_compared() -> None:
    a = of([1.0] * 5, {TIME_DATA_WAIT: {"": [1.0] * 5}})
    b = of([1.0] * 5, {TIME_DATA_WAIT: {"": [2.0] * 5}})
    assert compare(a, b).is_equal


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_told_from_a_change_of_level(seed: int) -> None:
    same = compare(of(noisy(seed)), of(noisy(seed + 100)))
    assert same.first
    assert not same.departures
    assert "no more than batch noise" in headline(same)
    (apart,) = compare(of(noisy(seed)), of(noisy(seed + 100, 0.2, since=200))).departures
    assert apart.signal is LOSS
    assert 190 <= apart.step <= 230


def test_a_loss_that_is_not_finite_departs_at_once() -> None:
    broken = noisy(0)
    broken[50:] = np.nan
    (apart,) = compare(of(noisy(0)), of(broken)).departures
    assert apart.step == 50


def test_lengths_and_missing_signals_are_said() -> None:
    a = of([1.0] * 5, {WEIGHT_NORM: {"w": [1.0] * 5}})
    compared = compare(a, of([1.0] * 3))
    assert not compared.first
    assert not compared.is_equal
    text = render(compared)
    assert "A goes on for 2 steps more" in text
    assert "A has 5 steps, B has 3; the first 3 were compared" in text
    assert "only in A: weight.norm" in text


def test_nothing_in_common_is_no_equality() -> None:
    compared = compare(of([1.0]), run_of({WEIGHT_NORM: {"w": [1.0]}}))
    assert not compared.is_equal
    assert "nothing to compare" in headline(compared)


def test_arguments_settings_versions_and_code_are_compared() -> None:
    diff = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n-x = 1\n+x = {1}\n"
    a, b = (
        with_(
            of([1.0], {LR: {"group 0": [rate]}}),
            environment=Environment(
                command=("train.py", "--lr", str(rate), "--fast", "data"),
                versions={"torch": version, "numpy": "2.0"},
                git=Git(commit, dirty=True, diff=diff.format("same.py", 2) + changed),
            ),
        )
        for rate, version, commit, changed in (
            (0.1, "2.6", "aaaaaaaaaaaa", diff.format("net.py", 3)),
            (0.2, "2.7", "bbbbbbbbbbbb", diff.format("net.py", 4)),
        )
    )
    compared = compare(a, b)
    assert {(each.name, each.a, each.b) for each in compared.configuration} == {
        ("--lr", "0.1", "0.2"),
        ("lr group 0", "0.1", "0.2"),
    }
    assert [(each.name, each.a, each.b) for each in compared.environment] == [
        ("torch", "2.6", "2.7")
    ]
    assert compared.changed_files == ("net.py",)
    assert compared.code[0].name == "commit"
    assert '"signal": "lr"' in render_json(compared)


def test_negative_numbers_are_values_of_options() -> None:
    a, b = (
        with_(of([1.0]), environment=Environment(command=("t.py", "--low", low)))
        for low in ("-1e-3", "-2e-3")
    )
    (change,) = compare(a, b).configuration
    assert (change.name, change.a, change.b) == ("--low", "-1e-3", "-2e-3")


def test_runs_without_meta_are_compared_too() -> None:
    run = of([1.0, 2.0])
    assert compare(replace(run, meta=Meta()), run).is_equal
