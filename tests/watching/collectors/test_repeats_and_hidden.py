"""Backward on one loss twice, and what `nan_to_num` takes away."""

import gc
import math
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import BACKWARD_REPEATED, HIDDEN_NONFINITE
from watching.collectors.trainings import values, watching


@pytest.fixture
def model():
    return nn.Linear(4, 1)


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.001)


def loss_of(model):
    return model(torch.randn(3, 4)).square().mean()


def repeated(path, model, optimizer, backward, steps=3):
    with watching(path, model, optimizer):
        for _ in range(steps):
            optimizer.zero_grad()
            backward()
            optimizer.step()
    return values(Run.load(path), BACKWARD_REPEATED)


def test_once_is_no_repeat(tmp_path, model, optimizer):
    assert (
        repeated(tmp_path / "run", model, optimizer, lambda: loss_of(model).backward()) == [0] * 3
    )


def test_twice(tmp_path, model, optimizer):
    def backward():
        loss = loss_of(model)
        loss.backward(retain_graph=True)
        loss.backward()

    assert repeated(tmp_path / "run", model, optimizer, backward) == [1] * 3


def test_twice_under_a_scaler(tmp_path, model, optimizer):
    scaler = torch.amp.GradScaler("cpu")

    def backward():
        loss = loss_of(model)
        scaler.scale(loss).backward(retain_graph=True)
        scaler.scale(loss).backward()

    assert repeated(tmp_path / "run", model, optimizer, backward) == [1] * 3


def test_micro_batches_are_other_losses(tmp_path, model, optimizer):
    def backward():
        for _ in range(20):  # so that some come to lie where others were
            loss_of(model).backward()

    assert repeated(tmp_path / "run", model, optimizer, backward) == [0] * 3


def test_for_the_gradients_of_one_tensor_after_another(tmp_path, model, optimizer):
    def backward():
        loss = loss_of(model)
        loss.backward(inputs=[model.weight], retain_graph=True)
        loss.backward(inputs=[model.bias])

    assert repeated(tmp_path / "run", model, optimizer, backward) == [0] * 3


def test_graphs_go_when_they_would(tmp_path, model, optimizer):
    class Held(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.big = Big()
            kept.append(weakref.ref(ctx.big))
            return x.sum()

        @staticmethod
        def backward(ctx, gradient):
            return gradient.expand(3, 1)

    class Big:
        pass

    kept = []
    with watching(tmp_path / "run", model, optimizer):
        loss = Held.apply(model(torch.randn(3, 4)))
        loss.backward()
        del loss
        gc.collect()
        assert kept[0]() is None
        optimizer.step()


# What is hidden.


class Hiding(nn.Module):
    def __init__(self, hide, *, inputs=False):
        super().__init__()
        self.layer, self.hide, self.inputs = nn.Linear(4, 1), hide, inputs

    def forward(self, x):
        if self.inputs:
            return self.layer(self.hide(x))
        return self.hide(self.layer(torch.ones_like(x)) + x[:, :1])  # weights stay finite


HIDINGS = {
    "function": lambda x: torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0),
    "by name": lambda x: torch.nan_to_num(input=x, posinf=0.0),
    "method": lambda x: x.nan_to_num(0.0, 0.0, 0.0),
    "in place": lambda x: torch.nan_to_num_(x * 1, 0.0, 0.0, 0.0),
    "method in place": lambda x: (x * 1).nan_to_num_(0.0, 0.0, 0.0),
}


@pytest.mark.parametrize("hide", HIDINGS.values(), ids=HIDINGS)
def test_what_is_replaced_is_counted_in_its_step(tmp_path, hide):
    model = Hiding(hide)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(tmp_path / "run", model, optimizer):
        for bad in (0, 2, 1, 0):
            x = torch.randn(5, 4)
            x[:bad] = math.inf
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            with torch.no_grad():
                model(torch.full((3, 4), math.nan))
    assert values(Run.load(tmp_path / "run"), HIDDEN_NONFINITE) == [0, 2, 1, 0]


@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize("hide", HIDINGS.values(), ids=HIDINGS)
def test_missing_values_that_are_cleaned_before_the_model_do_not_count(
    tmp_path, hide, micro_batches
):
    model = Hiding(hide, inputs=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(micro_batches):
                model(torch.full((3, 4), math.nan)).sum().backward()
            optimizer.step()
    assert HIDDEN_NONFINITE not in Run.load(tmp_path / "run")


def test_in_gradients_too(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for bad in (1.0, math.nan, 1.0):
            optimizer.zero_grad()
            (loss_of(model) * bad).backward()
            for each in model.parameters():
                each.grad.nan_to_num_()
            optimizer.step()
    assert values(Run.load(tmp_path / "run"), HIDDEN_NONFINITE) == [0, 5, 0]


def test_gradients_that_are_put_in_place_of_others(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for bad in (1.0, math.nan, 1.0):
            optimizer.zero_grad()
            (loss_of(model) * bad).backward()
            for each in model.parameters():
                each.grad = torch.nan_to_num(each.grad)
            optimizer.step()
    assert values(Run.load(tmp_path / "run"), HIDDEN_NONFINITE) == [0, 5, 0]


class Tagged(torch.Tensor):
    pass


def scripted(x):
    return torch.nan_to_num(x) + x.nan_to_num(nan=1.0)


def attending(x):
    return nn.functional.scaled_dot_product_attention(x, x, x)


def check_functions(path, *, while_watched):
    original, x = torch.nan_to_num, torch.tensor([math.nan, 2.0])
    model = nn.Linear(4, 1)

    def check():
        torch._dynamo.reset()
        assert torch.jit.script(scripted)(x).tolist() == [1, 4]
        y = torch.randn(1, 2, 3, 4)
        assert torch.equal(torch.jit.script(attending)(y), attending(y))
        assert torch.equal(
            torch.compile(attending, backend="aot_eager", fullgraph=True)(y), attending(y)
        )
        whole = torch.compile(scripted, backend="aot_eager", fullgraph=True)
        assert whole(x).tolist() == [1, 4]
        assert isinstance(x.as_subclass(Tagged).nan_to_num(), Tagged)
        assert isinstance(torch.nan_to_num(x.as_subclass(Tagged)), Tagged)
        assert torch.fx.symbolic_trace(scripted)(x).tolist() == [1, 4]
        assert torch.vmap(scripted)(x[None]).tolist() == [[1, 4]]

    with watching(path, model, torch.optim.SGD(model.parameters(), lr=0.001)):
        assert torch.nan_to_num is not original
        if while_watched:
            check()
    if not while_watched:
        check()
    assert torch.nan_to_num is original
    assert "nan_to_num" not in vars(torch.Tensor)


@pytest.mark.parametrize("when", ["while", "after"])
def test_functions_of_torch_are_what_they_were(tmp_path, when):
    """In a process of its own: what torch.compile knows of functions is kept by the process."""
    tests = str(Path(__file__).parent.parent.parent)
    subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore::DeprecationWarning",
            __file__,
            tmp_path,
            when,
        ],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])},
    )


if __name__ == "__main__":
    check_functions(Path(sys.argv[1]) / "run", while_watched=sys.argv[2] == "while")
