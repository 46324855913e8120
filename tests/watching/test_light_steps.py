"""Light steps: what is read at every step goes a short way, whatever the size of the model."""

import math
import sys
from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional

import holter
from holter.watching.blackbox import kept_edits
from holter.watching.budget import Budget
from holter.watching.collectors import gradients
from holter.watching.collectors.moments import Depth

PACKAGE = str(holter.__file__).removesuffix("__init__.py")


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """Read all steps but the first few lightly."""
    monkeypatch.setattr(Budget, "depth", lambda _, step: Depth.LIGHT if step > 2 else Depth.FULL)


def deep_net(layers: int) -> nn.Module:
    blocks = [(nn.Linear(4, 4), nn.Dropout(0.1)) for _ in range(layers)]
    return nn.Sequential(*(part for block in blocks for part in block), nn.Linear(4, 2))


def calls_of_a_step(path, layers: int, *, clips: bool = True) -> Counter[str]:
    """Count the calls of holter's functions in a light step that writes nothing."""
    model = deep_net(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    x, y = torch.randn(4, 4), torch.tensor([0, 1, 0, 1])
    steps: list[Counter[str]] = []

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    def count(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            steps[-1][f"{frame.f_code.co_name} in {frame.f_code.co_filename}"] += 1

    with holter.watch(model, optimizer, path, quiet=True):
        for _ in range(8):
            step()
        for _ in range(12):  # some are written at one of these steps, or looked at
            steps.append(Counter())
            sys.setprofile(count)
            step()
            sys.setprofile(None)
    return min(steps, key=Counter.total)


def test_a_light_step_costs_the_same_whatever_the_size_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_edits, "_LOOK_SHARE", math.inf)  # or weights are looked at rarer
    small, large = calls_of_a_step(tmp_path / "a", 1), calls_of_a_step(tmp_path / "b", 40)
    assert large == small
    assert large.total() < 122


def test_a_light_step_that_goes_like_the_last_one_takes_few_calls(tmp_path, monkeypatch):
    monkeypatch.setattr(Budget, "next_deep", lambda _, step: 1 << 62)
    monkeypatch.setattr(kept_edits, "_LOOK_SHARE", 1e-9)  # weights are looked at once
    small = calls_of_a_step(tmp_path / "a", 1, clips=False)
    large = calls_of_a_step(tmp_path / "b", 40, clips=False)
    assert large == small
    assert large.total() < 35
    assert calls_of_a_step(tmp_path / "c", 40).total() < 42


def test_a_light_step_makes_no_moments_and_no_readings(tmp_path):
    names = "".join(calls_of_a_step(tmp_path / "run", 1))
    assert "publish in" not in names
    assert "read in" not in names
    assert "write_step in" not in names


def test_functions_of_the_forward_pass_are_not_heard_in_a_light_step(tmp_path):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    calls: Counter[str] = Counter()

    def forward():
        torch.relu(model(torch.randn(4, 4))).nan_to_num()
        q = torch.randn(1, 2, 3, 4)
        functional.scaled_dot_product_attention(q, q, q)

    def count(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls[frame.f_code.co_name] += 1

    with holter.watch(model, optimizer, tmp_path / "run", quiet=True):
        for _ in range(8):
            model(torch.randn(4, 4)).sum().backward()
            optimizer.step()
        sys.setprofile(count)
        forward()
        sys.setprofile(None)
    assert calls == {"tapped": 3}


@pytest.mark.parametrize("frozen", [False, True])
def test_gradients_of_light_steps_are_those_of_deep_ones(tmp_path, monkeypatch, frozen):
    def recorded(name: str) -> holter.Run:
        torch.manual_seed(0)
        model = deep_net(3)
        model[0].weight.requires_grad_(not frozen)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        with holter.watch(model, optimizer, tmp_path / name, quiet=True):
            for step in range(9):
                optimizer.zero_grad()
                loss = model(torch.randn(4, 4)).relu().sum() * (math.inf if step == 7 else 1.0)
                loss.backward()
                optimizer.step()
        return holter.Run.load(tmp_path / name)

    monkeypatch.setattr(gradients, "on_gpu", lambda _: True)  # as if one launch read them all
    light = recorded("light")
    monkeypatch.setattr(Budget, "depth", lambda _, step: Depth.FULL)
    deep = recorded("deep")
    for name in (signal.name for signal in gradients.Gradients.emits):
        assert list(light.tables[name]) == list(deep.tables[name])
        for owner, series in deep.tables[name].items():
            assert light.tables[name][owner].steps.tolist() == series.steps.tolist()
            wanted = pytest.approx(series.values.tolist(), nan_ok=True, rel=1e-6)
            assert light.tables[name][owner].values.tolist() == wanted, (name, owner)


def test_modes_are_looked_at_again_when_one_was_changed(tmp_path):
    model = deep_net(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True):
        for step in range(12):
            if step == 8:
                model[1].eval()
            if step == 10:
                model.train()
            model(torch.randn(4, 4)).sum().backward()
            optimizer.step()
    table = holter.Run.load(tmp_path / "run").tables["mode.eval_fraction"]
    (series,) = table.values()
    assert series.values.tolist() == pytest.approx([0.0] * 8 + [1 / 3] * 2 + [0.0] * 2)
