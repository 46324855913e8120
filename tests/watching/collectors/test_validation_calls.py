"""What models are called with in validation, in which mode, and whether with a graph."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from holter import Run
from holter.record.signals import (
    BACKWARD_CALLS,
    VAL_GRAPH_FRACTION,
    VAL_INPUT_FINGERPRINT,
    VAL_INPUT_MEAN,
    VAL_INPUT_STD,
    VAL_LOSS,
    VAL_MODE_TRAINING,
    VAL_TRAIN_FRACTION,
)
from holter.watching.collectors.moments import Depth
from watching.collectors.trainings import values, watching


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5), nn.Linear(2, 1))


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.0)


def train(model, optimizer):
    optimizer.zero_grad()
    functional.mse_loss(model(torch.randn(4, 2)), torch.zeros(4, 1)).backward()
    optimizer.step()


BATCHES = [torch.randn(6, 2) * 3 + 5, torch.randn(2, 2) - 1]


def validate(model, context=torch.no_grad):
    with context():
        for x in BATCHES:
            functional.mse_loss(model(x), torch.zeros(len(x), 1))


def test_inputs_of_a_pass(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            model.train()
            train(model, optimizer)
            train(model, optimizer)
            model.eval()
            validate(model)
    run = Run.load(tmp_path / "run")
    whole = torch.cat(BATCHES)
    series = run[VAL_INPUT_MEAN]["Sequential"]
    assert series.steps.tolist() == run[VAL_LOSS]["mse_loss"].steps.tolist() == [1, 3]
    assert series.values.tolist() == pytest.approx([float(whole.mean())] * 2, rel=1e-5)
    wanted = float(whole.std(correction=0))
    assert values(run, VAL_INPUT_STD, "Sequential") == pytest.approx([wanted] * 2, rel=1e-5)
    assert len(set(values(run, VAL_INPUT_FINGERPRINT, "Sequential"))) == 1
    assert values(run, VAL_TRAIN_FRACTION, "Sequential") == [0, 0]
    assert values(run, VAL_GRAPH_FRACTION, "mse_loss") == [0, 0]


@pytest.mark.parametrize("context", [torch.no_grad, torch.enable_grad])
def test_also_after_light_steps(tmp_path, model, optimizer, context):
    with watching(tmp_path / "run", model, optimizer) as watch:
        watch._loop.stepper._budget.depth = lambda _: Depth.LIGHT
        for _ in range(3):
            model.train()
            for _ in range(5):
                train(model, optimizer)
            model.eval()
            validate(model, context)
    run = Run.load(tmp_path / "run")
    assert run[VAL_LOSS]["mse_loss"].steps.tolist() == [4, 9, 14]
    assert run[BACKWARD_CALLS][""].values.tolist() == [1] * 15
    if context is torch.no_grad:
        assert run[VAL_INPUT_MEAN]["Sequential"].steps.tolist() == [4, 9, 14]


def test_validation_in_training_mode(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            train(model, optimizer)
            validate(model)
    run = Run.load(tmp_path / "run")
    assert values(run, VAL_TRAIN_FRACTION, "Sequential") == [1, 1]
    assert values(run, VAL_MODE_TRAINING, "Sequential") == [1, 1]
    mean = float(BATCHES[1].mean())  # heard from the first loss on
    assert values(run, VAL_INPUT_MEAN, "Sequential") == pytest.approx([mean] * 2, rel=1e-5)


def test_modules_that_are_put_back_by_hand(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            model.train()
            train(model, optimizer)
            model.eval()
            for each in model:
                each.train()
            validate(model)
    run = Run.load(tmp_path / "run")
    assert values(run, VAL_TRAIN_FRACTION, "Sequential") == [1, 1]
    assert values(run, VAL_MODE_TRAINING, "Sequential") == [0, 0]


def test_only_a_model_that_was_validated_has_a_mode(tmp_path, model, optimizer):
    other = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5))
    second = torch.optim.SGD(other.parameters(), lr=0.0)
    with watching(tmp_path / "run", {"a": model, "b": other}, [optimizer, second]):
        for _ in range(2):
            model.train()
            functional.mse_loss(other(model(torch.randn(4, 2))), torch.zeros(4, 1)).backward()
            optimizer.step()
            second.step()
            model.eval()
            validate(model)
    run = Run.load(tmp_path / "run")
    assert list(run[VAL_TRAIN_FRACTION]) == ["a"]
    assert values(run, VAL_TRAIN_FRACTION, "a") == [0, 0]


def test_what_is_sampled_without_a_loss_is_no_validation(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            model.train()
            train(model, optimizer)
            model.eval()
            with torch.no_grad():
                model(BATCHES[0])
    run = Run.load(tmp_path / "run")
    assert VAL_INPUT_MEAN not in run
    assert VAL_TRAIN_FRACTION not in run


def test_a_pass_with_a_graph(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for number in range(3):
            model.train()
            train(model, optimizer)
            model.eval()
            validate(model, torch.no_grad if number == 1 else torch.enable_grad)
    run = Run.load(tmp_path / "run")
    assert values(run, VAL_GRAPH_FRACTION, "mse_loss") == [1, 0, 1]


def test_losses_that_an_attack_differentiates_are_no_validation(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            model.eval()
            x = torch.randn(4, 2)
            for _ in range(2):
                loss = functional.mse_loss(model(x.requires_grad_()), torch.ones(4, 1))
                (slope,) = torch.autograd.grad(loss, x)
                x = (x + slope.sign()).detach()
            model.train()
            train(model, optimizer)
            model.eval()
            validate(model)
    run = Run.load(tmp_path / "run")
    assert [series.values.tolist() for series in run[VAL_GRAPH_FRACTION].values()] == [[0, 0, 0]]


def test_training_in_eval_mode_on_two_losses_says_nothing_of_graphs(tmp_path, model, optimizer):
    model.eval()
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            one = functional.mse_loss(model(BATCHES[0]), torch.zeros(6, 1))
            two = functional.mse_loss(model(BATCHES[1]), torch.zeros(2, 1))
            (one + two).backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    graphs = values(run, VAL_GRAPH_FRACTION, "mse_loss") if VAL_GRAPH_FRACTION in run else []
    assert sum(graphs) == 0


def test_held_out_data_count_where_training_data_are_evaluated_as_well(tmp_path, model, optimizer):
    data = {"train": torch.randn(6, 2) - 4, "val": torch.randn(6, 2) + 4}

    def estimate():
        model.eval()
        with torch.no_grad():
            for split in ("train", "val"):
                for _ in range(6):
                    functional.mse_loss(model(data[split]), torch.zeros(6, 1))
        model.train()

    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            train(model, optimizer)
            estimate()
    run = Run.load(tmp_path / "run")
    wanted = float(data["val"].mean())
    assert values(run, VAL_INPUT_MEAN, "Sequential") == pytest.approx([wanted] * 3, rel=1e-5)
    assert values(run, VAL_TRAIN_FRACTION, "Sequential") == [0] * 3


@pytest.mark.parametrize("training", [True, False])
def test_a_copy_that_is_evaluated_in_place_of_the_model(tmp_path, model, optimizer, training):
    average = copy.deepcopy(model).requires_grad_(False).train(training)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            model.train()
            train(model, optimizer)
            model.eval()
            validate(average)
    run = Run.load(tmp_path / "run")
    assert values(run, VAL_TRAIN_FRACTION, "a copy of Sequential") == [float(training)] * 2
    assert "Sequential" not in run[VAL_TRAIN_FRACTION]


def test_a_copy_that_is_called_beside_the_model_says_nothing_of_its_validation(
    tmp_path, model, optimizer
):
    teacher = copy.deepcopy(model)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            model.train()
            train(model, optimizer)
            model.eval()
            with torch.no_grad():
                functional.mse_loss(model(BATCHES[0]), teacher(BATCHES[0]))
    run = Run.load(tmp_path / "run")
    assert values(run, VAL_TRAIN_FRACTION, "Sequential") == [0, 0]
    assert "a copy of Sequential" not in run[VAL_TRAIN_FRACTION]
