"""Validation losses, and the batches that loaders deliver."""

import time

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from holter import Run
from holter.record.events import LoaderSeen, PassBegan
from holter.record.signals import DATA_BATCH_SIZE, DATA_BATCHES, LOSS, TIME_DATA_WAIT, VAL_LOSS
from watching.collectors.trainings import values, watching


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Linear(2, 1))


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.0)


def train(model, optimizer):
    model.train()
    optimizer.zero_grad()
    functional.mse_loss(model(torch.ones(4, 2)), torch.zeros(4, 1)).backward()
    optimizer.step()


BATCHES = ((5, 1.0), (5, 2.0), (2, 10.0))  # rows, and the target of all of them


def evaluate(model, criterion):
    """One pass over uneven batches; the mean over all rows, by hand, whatever the reduction."""
    model.eval()
    total = 0.0
    for count, target in BATCHES:
        out = model(torch.ones(count, 2))
        criterion(out, torch.full((count, 1), target))
        rows = [(float(each.detach()) - target) ** 2 for each in out]
        total += sum(rows)
    return total / sum(count for count, _ in BATCHES)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_mean_by_batch_size(tmp_path, model, optimizer, context, reduction):
    wanted = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            train(model, optimizer)
            train(model, optimizer)
            with context():
                wanted.append(evaluate(model, nn.MSELoss(reduction=reduction)))
    run = Run.load(tmp_path / "run")
    series = run[VAL_LOSS]["mse_loss"]
    assert series.steps.tolist() == [1, 3]
    assert series.values.tolist() == pytest.approx(wanted, rel=1e-5)
    assert run.steps == 4


@pytest.mark.parametrize("count", [torch.tensor(20), 20])
def test_a_sum_is_divided_by_the_number_of_items_that_the_script_names(
    tmp_path, model, optimizer, count
):
    def summed(prediction, target, num_items_in_batch):
        return functional.mse_loss(prediction, target, reduction="sum") / num_items_in_batch

    with watching(tmp_path / "run", model, optimizer):
        train(model, optimizer)
        model.eval()
        with torch.no_grad():
            wanted = float(summed(model(torch.ones(5, 2)), torch.ones(5, 1), count))
        train(model, optimizer)
    assert values(Run.load(tmp_path / "run"), VAL_LOSS, "mse_loss") == pytest.approx([wanted])


def test_two_losses_are_kept_apart(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        train(model, optimizer)
        model.eval()
        with torch.no_grad():
            functional.mse_loss(torch.full((2, 1), 3.0), torch.zeros(2, 1))
            functional.l1_loss(torch.full((2, 1), 3.0), torch.zeros(2, 1))
    run = Run.load(tmp_path / "run")
    assert values(run, VAL_LOSS, "mse_loss") == [9]
    assert values(run, VAL_LOSS, "l1_loss") == [3]


def test_a_metric_of_the_training_batch_is_none(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            model.train()
            out = model(torch.ones(4, 2))
            out.sum().backward()
            with torch.no_grad():
                functional.l1_loss(out, torch.zeros(4, 1))
            functional.l1_loss(out.detach(), torch.zeros(4, 1))
            optimizer.step()
    assert VAL_LOSS not in Run.load(tmp_path / "run")


def test_training_in_eval_mode_is_still_training(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            model.eval()
            functional.mse_loss(model(torch.ones(4, 2)), torch.zeros(4, 1)).backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert VAL_LOSS not in run
    assert len(run[LOSS][""]) == 3


def test_what_the_loop_logs_comes_beside(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer) as watch:
        train(model, optimizer)
        watch.log(val_loss=0.25)
        train(model, optimizer)
    series = Run.load(tmp_path / "run")[VAL_LOSS][""]
    assert (series.steps.tolist(), series.values.tolist()) == ([0], [0.25])


def test_a_validation_loss_by_hand_is_a_blind_spot_that_is_told(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        train(model, optimizer)
        model.eval()
        with torch.no_grad():
            (model(torch.ones(2, 2)) ** 2).mean()
    assert "validation losses" in " ".join(Run.load(tmp_path / "run").meta.notes)


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.ones(2), torch.zeros(1)


def loop(loader, model, optimizer):
    for x, y in loader:
        model.train()
        functional.mse_loss(model(x), y).backward()
        optimizer.step()


def test_batches_and_the_wait_for_them(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        loop(DataLoader(Slow(), batch_size=4), model, optimizer)
    run = Run.load(tmp_path / "run")
    assert values(run, DATA_BATCH_SIZE, "loader 0") == [4, 2]
    waits = values(run, TIME_DATA_WAIT, "loader 0")
    assert 0.04 <= waits[0] < 1
    assert 0.02 <= waits[1] < waits[0] + 0.5
    (fact,) = [event.what for event in run.events_of(LoaderSeen)]
    assert (fact.batches, fact.batch_size, fact.workers) == (2, 4, 0)
    assert fact.shuffled is False


def test_micro_batches_add_up_and_validation_batches_do_not(tmp_path, model, optimizer):
    data = TensorDataset(torch.ones(8, 2), torch.zeros(8, 1))
    training, validation = DataLoader(data, 2, shuffle=True), DataLoader(data, 3)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            model.train()
            for number, (x, y) in enumerate(training):
                functional.mse_loss(model(x), y).backward()
                if number % 2:
                    optimizer.step()
            model.eval()
            with torch.no_grad():
                for x, y in validation:
                    functional.mse_loss(model(x), y)
    run = Run.load(tmp_path / "run")
    assert values(run, DATA_BATCH_SIZE, "loader 0") == [4] * 4
    assert values(run, DATA_BATCHES, "loader 0") == [2] * 4
    assert list(run[DATA_BATCH_SIZE]) == ["loader 0"]
    assert [event.what.loader for event in run.events_of(PassBegan)] == [
        "loader 0",
        "loader 1",
    ] * 2


@pytest.mark.parametrize(
    "batch",
    [
        lambda rows: {"x": rows, "name": "n"},
        lambda rows: [["text"], rows],
        lambda rows: rows,
    ],
    ids=["mapping", "nested", "tensor"],
)
def test_batches_of_any_shape(tmp_path, model, optimizer, batch):
    def collate(rows):
        return batch(torch.stack(rows))

    with watching(tmp_path / "run", model, optimizer):
        loader = DataLoader([torch.ones(2)] * 5, batch_size=5, collate_fn=collate)
        for _ in loader:
            train(model, optimizer)
    assert values(Run.load(tmp_path / "run"), DATA_BATCH_SIZE, "loader 0") == [5]


def test_a_loader_made_in_the_for_statement(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer):
        for _ in DataLoader([torch.ones(2)] * 5, batch_size=5):
            train(model, optimizer)
    assert values(Run.load(tmp_path / "run"), DATA_BATCH_SIZE, "loader 0") == [5]
