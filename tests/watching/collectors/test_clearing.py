"""Gradients left from the step before: the many ways of clearing them, and of forgetting to."""

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import GRAD_CARRIED_FRACTION, GRAD_DISCARDED
from watching.collectors.trainings import watching


def carried(path, owner=""):
    """Carried share by step; empty where nothing was read."""
    run = Run.load(path)
    return run[GRAD_CARRIED_FRACTION][owner].values.tolist() if GRAD_CARRIED_FRACTION in run else []


def backward(model):
    model(torch.randn(4, 3)).pow(2).sum().backward()


def each_gradient(action):
    def clear(model, optimizer):
        for parameter in model.parameters():
            if parameter.grad is not None:
                action(parameter)

    return clear


WAYS = {
    "to none": lambda model, optimizer: optimizer.zero_grad(set_to_none=True),
    "to zero": lambda model, optimizer: optimizer.zero_grad(set_to_none=False),
    "by the model": lambda model, optimizer: model.zero_grad(),
    "by the model, to zero": lambda model, optimizer: model.zero_grad(set_to_none=False),
    "p.grad = None": each_gradient(lambda p: setattr(p, "grad", None)),
    "p.grad.zero_()": each_gradient(lambda p: p.grad.zero_()),
    "p.grad.data.zero_()": each_gradient(lambda p: p.grad.data.zero_()),
    "p.grad *= 0": each_gradient(lambda p: p.grad.mul_(0)),
    "zeros_like": each_gradient(lambda p: setattr(p, "grad", torch.zeros_like(p))),
}


def train(path, clear, *, before, clip=False, make=None, steps=5):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    optimizer = (make or (lambda p: torch.optim.SGD(p, lr=0.001)))(model.parameters())
    with watching(path, model, optimizer):
        for _ in range(steps):
            if before:
                clear(model, optimizer)
            backward(model)
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            if not before:
                clear(model, optimizer)
    return carried(path)


@pytest.mark.parametrize("before", [True, False], ids=["before backward", "after step"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_clearing(tmp_path, way, before):
    assert train(tmp_path / "run", WAYS[way], before=before) == [0] * 4


@pytest.mark.parametrize("clip", [False, True])
def test_never_cleared(tmp_path, clip):
    assert train(tmp_path / "run", lambda m, o: None, before=True, clip=clip) == [1] * 4


def test_master_weights_get_their_gradients_by_hand(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    masters = [each.detach().clone().requires_grad_() for each in model.parameters()]
    for each in masters:
        each.grad = torch.zeros_like(each)
    optimizer = torch.optim.SGD(masters, lr=0.001)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(5):
            model.zero_grad()
            backward(model)
            with torch.no_grad():
                for master, each in zip(masters, model.parameters(), strict=True):
                    master.grad.copy_(each.grad)
            optimizer.step()
            with torch.no_grad():
                for master, each in zip(masters, model.parameters(), strict=True):
                    each.copy_(master)
    assert set(carried(tmp_path / "run")) <= {0}


def test_cleared_and_clipped(tmp_path):
    assert train(tmp_path / "run", WAYS["to none"], before=True, clip=True) == [0] * 4


def test_only_a_part_is_cleared(tmp_path):
    def partly(model, optimizer):
        model[0].zero_grad()

    assert train(tmp_path / "run", partly, before=True) == [0.5] * 4


@pytest.mark.parametrize("clears", [True, False])
def test_accumulation_by_intent(tmp_path, clears):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with watching(tmp_path / "run", model, optimizer):
        for batch in range(12):
            backward(model)
            if batch % 3 == 2:
                optimizer.step()
                if clears:
                    optimizer.zero_grad()
    assert carried(tmp_path / "run") == [0 if clears else 1] * 3


@pytest.mark.parametrize("way", ["to none", "to zero", "p.grad.data.zero_()"])
def test_a_generator_that_pollutes_the_critic(tmp_path, way):
    maker, critic = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizers = {
        "maker": torch.optim.SGD(maker.parameters(), lr=0.001),
        "critic": torch.optim.SGD(critic.parameters(), lr=0.001),
    }
    with watching(tmp_path / "run", {"maker": maker, "critic": critic}, optimizers):
        for _ in range(4):
            WAYS[way](critic, optimizers["critic"])
            backward(critic)
            optimizers["critic"].step()
            WAYS[way](maker, optimizers["maker"])
            backward(nn.Sequential(maker, critic))
            optimizers["maker"].step()
    assert carried(tmp_path / "run", "critic") == [0] * 3
    assert carried(tmp_path / "run", "maker") == [0] * 3


def test_a_critic_that_is_never_cleared(tmp_path):
    maker, critic = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizers = {
        "maker": torch.optim.SGD(maker.parameters(), lr=0.001),
        "critic": torch.optim.SGD(critic.parameters(), lr=0.001),
    }
    with watching(tmp_path / "run", {"maker": maker, "critic": critic}, optimizers):
        for _ in range(4):
            backward(critic)
            optimizers["critic"].step()
            maker.zero_grad()
            backward(nn.Sequential(maker, critic))
            optimizers["maker"].step()
    assert carried(tmp_path / "run", "critic") == [1] * 3
    assert carried(tmp_path / "run", "maker") == [0] * 3


@pytest.mark.parametrize("clears", [True, False])
def test_a_closure(tmp_path, clears):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)

    def closure():
        if clears:
            optimizer.zero_grad()
        loss = model(torch.ones(2, 3)).pow(2).sum() + 1
        loss.backward()
        return loss

    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            optimizer.step(closure)
    assert carried(tmp_path / "run") == [0 if clears else 1] * 3


@pytest.mark.parametrize("clears", [True, False])
def test_an_optimizer_made_anew_every_epoch(tmp_path, clears):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with watching(tmp_path / "run", model, optimizer) as watch:
        for epoch in range(3):
            if epoch:
                optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
                watch.add(model, optimizer)
            for _ in range(3):
                if clears:
                    optimizer.zero_grad()
                backward(model)
                optimizer.step()
    read = carried(tmp_path / "run")
    assert set(read) == {0.0 if clears else 1.0}
    assert len(read) >= 6


def test_a_group_added_later_does_not_interrupt(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.001)
    with watching(tmp_path / "run", model, optimizer):
        for step in range(5):
            backward(model)
            optimizer.step()
            if step == 2:
                optimizer.add_param_group({"params": model[0].parameters()})
    assert carried(tmp_path / "run") == [1] * 4


def test_a_gradient_of_zero_is_not_carried(tmp_path):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            (model(torch.ones(1, 3)).sum() * 0).backward()
            optimizer.step()
    assert carried(tmp_path / "run") == [0, 0]


@pytest.mark.parametrize(("cleared", "lost"), [(True, 3), (False, 0)])
def test_gradients_that_no_optimizer_steps_with_are_discarded(tmp_path, cleared, lost):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            optimizer.zero_grad()
            for _ in range(4):
                if cleared:
                    optimizer.zero_grad()
                backward(model)
            optimizer.step()
    discarded = Run.load(tmp_path / "run")[GRAD_DISCARDED][""].values
    assert discarded[-3:].tolist() == [lost] * 3


def test_what_another_optimizer_has_stepped_with_is_not_discarded(tmp_path):
    generator, critic = nn.Linear(3, 3), nn.Linear(3, 1)
    one = torch.optim.SGD(generator.parameters(), lr=0.01)
    two = torch.optim.SGD(critic.parameters(), lr=0.01)
    with watching(tmp_path / "run", [generator, critic], [one, two]):
        for _ in range(5):
            for optimizer in (one, two):  # both give gradients to the critic
                generator.zero_grad()
                critic.zero_grad()
                critic(generator(torch.randn(4, 3))).sum().backward()
                optimizer.step()
    for series in Run.load(tmp_path / "run")[GRAD_DISCARDED].values():
        assert not series.values.any()
