"""Gradients against what the parameters hold, read by hand."""

import math

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import (
    GRAD_ABSMAX,
    GRAD_NONFINITE,
    GRAD_NORM,
    GRAD_TOTAL_NORM,
    GRAD_ZERO_FRACTION,
)
from watching.collectors.trainings import mlp, values, watching


def expected(model):
    """Name -> norm, largest magnitude, zero share; by hand, in float64."""
    return {
        name: (
            float(each.grad.double().norm()),
            float(each.grad.double().abs().max()),
            float((each.grad == 0).double().mean()),
        )
        for name, each in model.named_parameters()
        if each.grad is not None
    }


def agrees(run, step, wanted):
    for name, (norm, absmax, zeros) in wanted.items():
        assert values(run, GRAD_NORM, name)[step] == pytest.approx(norm, rel=1e-5, abs=1e-9)
        assert values(run, GRAD_ABSMAX, name)[step] == pytest.approx(absmax, rel=1e-5, abs=1e-9)
        assert values(run, GRAD_ZERO_FRACTION, name)[step] == pytest.approx(zeros)
        assert values(run, GRAD_NONFINITE, name)[step] == 0
    total = math.sqrt(sum(norm**2 for norm, _, _ in wanted.values()))
    assert values(run, GRAD_TOTAL_NORM)[step] == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("clip", [None, "norm", "value", "with norm"])
def test_plain_and_clipped_gradients_are_read_before_clipping(tmp_path, clip):
    torch.manual_seed(3)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wanted = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 6)).pow(2).sum().backward()
            wanted.append(expected(model))
            if clip == "norm":
                nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            elif clip == "value":
                nn.utils.clip_grad_value_(list(model.parameters()), 1e-4)
            elif clip == "with norm":
                total = nn.utils.get_total_norm([each.grad for each in model.parameters()])
                nn.utils.clip_grads_with_norm_(model.parameters(), 1e-3, total)
            optimizer.step()
    run = Run.load(tmp_path / "run")
    for step, each in enumerate(wanted):
        agrees(run, step, each)


def test_a_parameter_without_a_gradient_has_no_reading(tmp_path):
    used, unused = nn.Linear(3, 1), nn.Linear(3, 1)
    model = nn.ModuleDict({"unused": unused, "used": used})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        for step in range(3):
            optimizer.zero_grad()
            (
                used(torch.ones(1, 3)) + (unused(torch.ones(1, 3)) if step == 1 else 0)
            ).sum().backward()
            optimizer.step()
    table = Run.load(tmp_path / "run")[GRAD_NORM]
    assert table["used.weight"].steps.tolist() == [0, 1, 2]
    assert table["unused.weight"].steps.tolist() == [1]
    assert table["unused.weight"].values.tolist() == [pytest.approx(math.sqrt(3))]
    assert Run.load(tmp_path / "run")[GRAD_TOTAL_NORM][""].values.tolist() == pytest.approx(
        [2, math.sqrt(8), 2]
    )


def test_nonfinite_gradients_are_counted_and_total_is_not_finite(tmp_path):
    model = nn.Linear(4, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        model(torch.tensor([[1.0, math.nan, math.inf, 0.0]])).sum().backward()
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, GRAD_NONFINITE, "weight") == [2]
    assert values(run, GRAD_ZERO_FRACTION, "weight") == [0.25]
    assert math.isnan(values(run, GRAD_TOTAL_NORM)[0])


def test_large_gradients_have_a_finite_total(tmp_path):
    model = nn.Linear(2, 1, bias=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(tmp_path / "run", model, optimizer):
        (model(torch.full((1, 2), 1.0)).sum() * 1e25).backward()
        optimizer.step()
    assert values(Run.load(tmp_path / "run"), GRAD_TOTAL_NORM) == [
        pytest.approx(math.sqrt(3) * 1e25, rel=1e-5)
    ]


def test_zero_share_of_sparse_gradients(tmp_path):
    model = nn.Embedding(10, 2, sparse=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        model(torch.tensor([1, 1, 7])).sum().backward()
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, GRAD_ZERO_FRACTION, "weight") == [pytest.approx(0.8)]
    assert values(run, GRAD_NORM, "weight") == [pytest.approx(math.sqrt(2 * 4 + 2 * 1))]


@pytest.mark.parametrize("way", ["step", "unscale", "unscale and clip", "clip scaled"])
def test_the_loss_scale_is_not_in_them(tmp_path, way):
    torch.manual_seed(5)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    wanted = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(4, 3)).pow(2).mean()).backward()
            wanted.append({n: (a / 4096, b / 4096, c) for n, (a, b, c) in expected(model).items()})
            if way == "clip scaled":  # a mistake of the script, not ours
                nn.utils.clip_grad_norm_(model.parameters(), 1e9)
            elif way != "step":
                scaler.unscale_(optimizer)
            if way == "unscale and clip":
                nn.utils.clip_grad_norm_(model.parameters(), 1e-4)
            scaler.step(optimizer)
            scaler.update()
    run = Run.load(tmp_path / "run")
    for step, each in enumerate(wanted):
        agrees(run, step, each)


def test_two_optimizers_over_the_same_parameters(tmp_path):
    model = nn.Linear(3, 1, bias=False)
    first = torch.optim.SGD(model.parameters(), lr=0.1)
    second = torch.optim.Adam(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, {"a": first, "b": second}):
        for optimizer in (first, second, first, second):
            optimizer.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert run.meta.notes == ()
    assert run[GRAD_NORM]["weight"].steps.tolist() == [0, 1, 2, 3]


def test_a_second_optimizer_over_a_part_of_the_parameters(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2, bias=False), nn.Linear(2, 1, bias=False))
    whole = torch.optim.SGD(model.parameters(), lr=0.01)
    head = torch.optim.SGD(model[1].parameters(), lr=0.01)
    with watching(tmp_path / "run", model, {"whole": whole, "head": head}):
        for optimizer in (whole, head):
            optimizer.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert run.meta.notes == ()
    assert run[GRAD_NORM]["1.weight"].steps.tolist() == [0, 1]
    assert run[GRAD_TOTAL_NORM]["head"].values.tolist() == pytest.approx(
        [run[GRAD_NORM]["1.weight"].values[1]]
    )
