"""The time of the phases of a step, by the clock of the host: sleeps of known length."""

import gc
import io
import time

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from holter import Run
from holter.record.signals import (
    TIME_BACKWARD,
    TIME_CHECKPOINT,
    TIME_COMPILED_GRAPHS,
    TIME_DATA_WAIT,
    TIME_EVALUATION,
    TIME_FORWARD,
    TIME_GARBAGE,
    TIME_OPTIMIZER,
    TIME_STEP,
    WATCH_TIME,
)
from watching.collectors.trainings import values, watching

NAP = 0.03  # seconds


class Slowly(torch.autograd.Function):
    """Sleeps in both passes, twice as long in backward."""

    @staticmethod
    def forward(ctx, x):
        time.sleep(NAP)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(2 * NAP)
        return grad


class SlowSGD(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(group["lr"] * parameter.grad)
        time.sleep(3 * NAP)


class SlowData(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        time.sleep(NAP)
        return torch.randn(4)


def slow_loss(model, x):
    return Slowly.apply(model(x)).pow(2).mean()


def recorded(tmp_path, loop, optimizer=torch.optim.SGD):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    made = optimizer(model.parameters(), lr=0.01)
    with watching(tmp_path / "run", model, made):
        loop(model, made)
    return Run.load(tmp_path / "run")


def typical(run, signal, owner=""):
    return sorted(values(run, signal, owner))[len(run[signal][owner]) // 2]


def test_each_phase_has_its_time(tmp_path):
    def loop(model, optimizer):
        for batch in DataLoader(SlowData(), 2):
            optimizer.zero_grad()
            slow_loss(model, batch).backward()
            optimizer.step()

    run = recorded(tmp_path, loop, SlowSGD)
    expected = {TIME_FORWARD: 1, TIME_BACKWARD: 2, TIME_OPTIMIZER: 3}
    for signal, naps in expected.items():
        assert naps * NAP <= typical(run, signal) < (naps + 2) * NAP, signal
    assert 2 * NAP <= typical(run, TIME_DATA_WAIT, "loader 0") < 4 * NAP
    assert 8 * NAP <= typical(run, TIME_STEP) < 13 * NAP
    assert len(run[TIME_STEP][""]) == 5  # the first step has no update before it


def test_the_time_of_holter_is_no_part_of_a_step(tmp_path, monkeypatch):
    from holter.watching.collectors.weights import Weights

    read = Weights.read

    def slow_read(self, moment):
        time.sleep(NAP)
        return read(self, moment)

    monkeypatch.setattr(Weights, "read", slow_read)

    def loop(model, optimizer):
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(3, 4)).pow(2).mean().backward()
            optimizer.step()

    run = recorded(tmp_path, loop)
    assert typical(run, WATCH_TIME) >= NAP
    assert typical(run, TIME_STEP) < NAP


def test_a_closure_is_no_time_of_the_optimizer(tmp_path):
    def loop(model, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = slow_loss(model, torch.randn(3, 4))
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)

    run = recorded(tmp_path, loop)
    assert typical(run, TIME_OPTIMIZER) < NAP
    assert NAP <= typical(run, TIME_FORWARD) < 3 * NAP
    assert 2 * NAP <= typical(run, TIME_BACKWARD) < 4 * NAP


def test_accumulated_batches_add_up(tmp_path):
    def loop(model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(2):
                slow_loss(model, torch.randn(3, 4)).backward()
            optimizer.step()

    run = recorded(tmp_path, loop)
    assert 4 * NAP <= typical(run, TIME_BACKWARD) < 7 * NAP
    assert 2 * NAP <= typical(run, TIME_FORWARD) < 4 * NAP


def test_interruptions_are_filed_under_the_step_that_follows(tmp_path):
    def loop(model, optimizer):
        for step in range(6):
            optimizer.zero_grad()
            functional.mse_loss(model(torch.randn(3, 4)), torch.zeros(3, 2)).backward()
            optimizer.step()
            if step == 1:
                model.eval()
                with torch.no_grad():
                    time.sleep(NAP)
                    functional.mse_loss(model(torch.randn(3, 4)), torch.zeros(3, 2))
                model.train()
            if step == 3:
                torch.save(nn.Linear(500, 500).state_dict(), io.BytesIO())
                gc.collect()

    run = recorded(tmp_path, loop)
    evaluation = values(run, TIME_EVALUATION)
    assert evaluation[2] >= NAP
    assert sum(evaluation) == pytest.approx(evaluation[2])
    for signal in (TIME_CHECKPOINT, TIME_GARBAGE):
        assert values(run, signal)[4] > 0, signal
    assert sum(values(run, TIME_CHECKPOINT)) == pytest.approx(values(run, TIME_CHECKPOINT)[4])
    assert values(run, TIME_FORWARD)[4] < values(run, TIME_GARBAGE)[4] / 2
    assert sum(values(run, TIME_COMPILED_GRAPHS)) == 0


@pytest.mark.parametrize("fetches_first", [False, True])
def test_an_evaluation_without_a_loss_is_one(tmp_path, fetches_first):
    """Accuracy alone: `model.train()` comes before or after the first batch of the epoch."""
    train, held = DataLoader(torch.randn(12, 4), 4), DataLoader(torch.randn(8, 4), 4)

    def loop(model, optimizer):
        for _ in range(2):
            if not fetches_first:
                model.train()
            for x in train:
                model.train()
                optimizer.zero_grad()
                functional.mse_loss(model(x), torch.zeros(4, 2)).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for x in held:
                    time.sleep(NAP)
                    model(x).argmax(1).sum()

    run = recorded(tmp_path, loop)
    evaluation = values(run, TIME_EVALUATION)
    assert evaluation[3] >= 2 * NAP
    assert sum(evaluation) == pytest.approx(evaluation[3])
    assert values(run, TIME_FORWARD)[3] < NAP


def test_a_rollout_in_eval_mode_is_no_evaluation(tmp_path):
    def loop(model, optimizer):
        for _ in range(3):
            model.eval()
            with torch.no_grad():
                time.sleep(NAP)
                model(torch.randn(3, 4))
            model.train()
            optimizer.zero_grad()
            functional.mse_loss(model(torch.randn(3, 4)), torch.zeros(3, 2)).backward()
            optimizer.step()

    run = recorded(tmp_path, loop)
    assert sum(values(run, TIME_EVALUATION)) == 0
    assert min(values(run, TIME_FORWARD)[1:]) >= NAP


def test_compilations_are_counted(tmp_path):
    def loop(model, optimizer):
        double = torch.compile(lambda x: 2 * x + 1, backend="eager", dynamic=False)
        for step in range(6):
            x = double(torch.randn(3 + step // 3, 4))  # another shape from step 3 on
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

    graphs = values(recorded(tmp_path, loop), TIME_COMPILED_GRAPHS)
    assert [count > 0 for count in graphs] == [True, False, False, True, False, False]


def test_two_optimizers_of_one_step_share_it(tmp_path):
    models = [nn.Linear(4, 2), nn.Linear(4, 2)]
    optimizers = [SlowSGD(model.parameters(), lr=0.01) for model in models]
    with watching(tmp_path / "run", models, optimizers):
        for _ in range(3):
            x = torch.randn(3, 4)
            sum(model(x).pow(2).mean() for model in models).backward()
            for optimizer in optimizers:
                optimizer.step()
    run = Run.load(tmp_path / "run")
    assert 6 * NAP <= typical(run, TIME_OPTIMIZER) < 9 * NAP
    assert 6 * NAP <= typical(run, TIME_STEP) < 11 * NAP
