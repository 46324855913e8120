"""Numbers that a script moves: followed, chosen, and held in a rerun."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holter.scripts.reruns.choosing import factors, holdable, set_back
from holter.scripts.reruns.holding import HeldNumber, held
from holter.scripts.reruns.numbers import NumberSurvey, Place, ScriptNumber, Series

STEPS = 40


@dataclass
class Weights:
    kl: float = 1e-3


class Warmup:
    def __init__(self) -> None:
        self.weights = Weights()
        self.options = {"scale": 1.0}

    def step(self) -> float:
        self.weights.kl *= 1.1
        self.options["scale"] /= 2
        return self.weights.kl


def horizon(step: int) -> int:
    return 3 if step < 30 else 80


def script(backward: Callable[[], None], used: list[tuple[float, ...]]) -> None:
    warmup = Warmup()
    for step in range(STEPS):
        length = horizon(step)
        temperature = 0.9**step
        noise = float(step * 7919 % 13)
        weight = warmup.step()
        used.append((warmup.weights.kl, warmup.options["scale"], length, temperature, weight))
        backward()
        del noise


def surveyed() -> dict[ScriptNumber, Series]:
    made: list[int] = []  # backward passes
    survey = NumberSurvey(lambda: len(made))

    def backward() -> None:
        survey.look(sys._getframe(1))
        made.append(1)

    before = sys.gettrace()
    try:
        survey.begin()
        script(backward, [])
    finally:
        sys.settrace(before)
    return {each.number: each.series for each in survey.told}


def test_a_schedule_is_told_from_counters_and_measurements() -> None:
    found = holdable(surveyed(), first=20, onset=30, failing=35)
    names = [each.name for each in found]
    assert names[0] == "length=3"
    assert {name.partition("=")[0] for name in names} == {
        "length",
        "warmup.weights.kl",
        "warmup.options[scale]",
        "temperature",
    }
    places = {each.number.place for each in found[0].held}
    assert {Place.VARIABLE, Place.RETURNED} <= places


def test_a_decay_counts_by_how_far_it_is_from_1() -> None:
    number = ScriptNumber(Place.ATTRIBUTE, ("teacher", "keep"), "train.py", "<module>")
    other = ScriptNumber(Place.ATTRIBUTE, ("teacher", "share"), "train.py", "<module>")
    keep: Series = {step: 0.9 + 0.005 * step for step in range(40)}
    share: Series = {step: 0.2 + 0.001 * step for step in range(40)}
    found = holdable({number: keep, other: share}, first=20, onset=30, failing=35)
    assert [each.name for each in found] == ["teacher.keep=1"]


def number(name: str, place: Place = Place.VARIABLE) -> ScriptNumber:
    return ScriptNumber(place, (name,), "train.py", "<module>")


def test_what_only_counts_is_told_from_what_a_schedule_moves() -> None:
    update: Series = {step: float(step // 10) for step in range(40)}
    spread: Series = {step: 0.3 + 0.5 * (step // 10) for step in range(40)}
    changed = {number("update"): update, number("spread"): spread}
    found = holdable(changed, first=20, onset=30, failing=35)
    assert {each.name: each.counts for each in found} == {"spread=1.3": False, "update=2": True}


def test_a_number_may_be_held_at_an_earlier_value() -> None:
    factor: Series = {step: 1 - step / 30 for step in range(40)}
    (late,) = holdable({number("factor"): factor}, first=33, onset=37, failing=39)
    assert (late.name, late.begins) == ("factor=-0.1", 33)
    assert late.earlier is not None
    assert (late.earlier.name, late.earlier.begins) == ("factor=1", 0)


def test_a_counter_that_is_set_back_where_it_fails() -> None:
    steps = range(50, 101)
    t: Series = {step: float(step + 1 if step < 100 else 0) for step in steps}
    going: Series = {step: float(step) for step in steps}
    drops: Series = {step: 1.0 if step < 100 else 0.5 for step in steps}
    changed = {number("t"): t, number("step"): going, number("rate"): drops}
    assert [each.name for each in set_back(changed, onset=100, failing=100)] == ["t=100"]
    assert not set_back(changed, onset=90, failing=95)


def test_a_factor_a_little_above_1_is_put_below_it() -> None:
    gamma: Series = dict.fromkeys(range(40), 1 / 0.9)
    wide: Series = dict.fromkeys(range(40), 1.4)
    option = number("momentum", Place.OPTION)
    (found,) = factors({number("gamma"): gamma, number("wide"): wide, option: gamma})
    assert (found.name, found.begins) == ("gamma=0.9", 0)
    assert found.held[0].value == pytest.approx(0.9)


def run_held(numbers: tuple[HeldNumber, ...], begins: int) -> list[tuple[float, ...]]:
    used: list[tuple[float, ...]] = []
    entered: list[Any] = []

    def backward() -> None:
        if len(used) == begins:
            change = held(numbers, lambda: None)
            change.__enter__()
            entered.append(change)

    before = sys.gettrace()
    module = sys.modules[__name__]
    originals = {"horizon": module.horizon, "step": Warmup.step}
    try:
        script(backward, used)
    finally:
        sys.settrace(before)
        module.horizon, Warmup.step = originals["horizon"], originals["step"]
        entered[0].__exit__(None, None, None)
    return used


def test_numbers_are_held_wherever_the_script_keeps_them() -> None:
    for number in holdable(surveyed(), first=20, onset=30, failing=35):
        name, _, value = number.name.partition("=")
        column = ("warmup.weights.kl", "warmup.options[scale]", "length", "temperature").index(name)
        used = run_held(number.held, number.begins + 1)
        assert [round(row[column] / float(value), 2) for row in used[number.begins + 1 :]] == (
            [1.0] * (STEPS - number.begins - 1)
        )
        if column == 0:
            assert used[-1][4] == used[-1][0]


KL_WEIGHT = """
import torch
from torch import nn

torch.manual_seed(0)


class Warmup:
    def __init__(self):
        self.value = 1e-6

    def step(self):
        self.value *= 1.1


x = torch.randn(512, 4)
y = x.sum(1, keepdim=True)
model, warmup = nn.Linear(4, 1), Warmup()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(260):
    rows = torch.randint(0, 512, (32,))
    warmup.step()
    prior = 50 + sum((p ** 2).sum() for p in model.parameters())
    loss = (model(x[rows]) - y[rows]).pow(2).mean() + 0.1 + warmup.value * prior
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

MOMENTUM = """
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = torch.sin(x).sum(1, keepdim=True)
weight = torch.zeros(8, 1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.05, momentum=0.5)
for step in range(220):
    for group in optimizer.param_groups:
        group["momentum"] = 0.5 if step < 100 else min(1.1, 0.5 + (step - 100) * 0.02)
    rows = torch.randint(0, 512, (32,))
    loss = (x[rows] @ weight - y[rows]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

HORIZON = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


def horizon(step):
    return 2 if step < 60 else 400


for step in range(90):
    start = torch.randn(16, 2)
    state = start
    for _ in range(horizon(step)):
        state = state + 0.5 * (model(state) + 2 * state)
    loss = (state - start).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    optimizer.step()
"""


def replayed(folder: Path, source: str, *options: str) -> dict[str, Any]:
    (folder / "train.py").write_text(source)
    holter(folder, "run", "--no-check", "--out", "run", "train.py")
    ran = holter(folder, "try", "replay", "--json", *options, "run")
    assert ran.returncode in (0, 1), ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def holter(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holter", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "options", "cure"),
    [
        pytest.param(KL_WEIGHT, (), "held warmup.value=", id="attribute of an object"),
        pytest.param(MOMENTUM, ("--whole",), "held momentum=0.5", id="option of the optimizer"),
        pytest.param(HORIZON, (), "held horizon()=2", id="integer"),
    ],
)
def test_a_number_that_breaks_a_script_is_held(
    source: str, options: tuple[str, ...], cure: str, tmp_path: Path
) -> None:
    report = replayed(tmp_path, source, *options)
    assert report["replay"]["reproduction"]["verdict"] == "bit for bit"
    assert str(report["replay"]["smallest_cure"]).startswith(cure)
    assert report["diagnosis"]["leading"]["rule"] == "changed-settings"
