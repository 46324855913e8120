"""The order of the batches of each pass."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, Sampler, TensorDataset

from holter import Run
from holter.record.events import LoaderSeen, PassOrder
from watching.collectors.trainings import watching


def data(augmented=False):
    x, y = torch.randn(48, 3), torch.randint(0, 4, (48,))

    class Noisy(TensorDataset):
        def __getitem__(self, index):
            inputs, label = super().__getitem__(index)
            return inputs + torch.rand(()), label

    return (Noisy if augmented else TensorDataset)(x, y)


def passes(path, loader, epochs=3, before=lambda _: None, trains=True):
    """The events of training over a loader, or over those that `loader` makes."""
    model = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(path, model, optimizer):
        for epoch in range(epochs):
            before(epoch)
            for x, y in loader() if callable(loader) else loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                if trains:
                    optimizer.step()
    run = Run.load(path)
    return [event.what for event in run.events_of(PassOrder)], run.events_of(LoaderSeen)[0].what


def numbers(orders, name):
    return len({getattr(each, name) for each in orders})


def test_shuffled_anew(tmp_path):
    orders, seen = passes(tmp_path / "run", DataLoader(data(), 4, shuffle=True))
    assert seen.order == "shuffled"
    assert [each.batches for each in orders] == [12] * 3
    assert [each.steps for each in orders] == [11] * 3
    assert (numbers(orders, "inputs"), numbers(orders, "labels")) == (3, 3)


def test_a_seed_in_every_epoch(tmp_path):
    loader = DataLoader(data(), 4, shuffle=True)
    orders, _ = passes(tmp_path / "run", loader, before=lambda _: torch.manual_seed(0))
    assert (numbers(orders, "inputs"), numbers(orders, "labels")) == (1, 1)


def test_a_loader_that_is_made_again(tmp_path):
    def loader():
        return DataLoader(DATA, 4, shuffle=True, generator=torch.Generator().manual_seed(0))

    orders, _ = passes(tmp_path / "run", loader)
    assert len(orders) == 3
    assert numbers(orders, "inputs") == 1


DATA = data()


def test_augmented_inputs_differ_and_labels_tell(tmp_path):
    orders, seen = passes(tmp_path / "run", DataLoader(data(augmented=True), 4))
    assert seen.order == "sequential"
    assert (numbers(orders, "inputs"), numbers(orders, "labels")) == (3, 1)


@pytest.mark.parametrize("sets", [True, False])
def test_a_distributed_sampler(tmp_path, sets):
    sampler = DistributedSampler(DATA, num_replicas=2, rank=0)
    loader = DataLoader(DATA, 4, sampler=sampler)
    before = sampler.set_epoch if sets else lambda _: None
    orders, seen = passes(tmp_path / "run", loader, before=before)
    assert seen.order == "shuffled"
    assert numbers(orders, "inputs") == (3 if sets else 1)


def test_a_sampler_of_the_script(tmp_path):
    class Mine(Sampler):
        def __iter__(self):
            return iter(range(47, -1, -1))

        def __len__(self):
            return 48

    _, seen = passes(tmp_path / "run", DataLoader(DATA, 4, sampler=Mine()))
    assert seen.order == ""


def test_a_pass_without_training_has_no_steps(tmp_path):
    orders, _ = passes(tmp_path / "run", DataLoader(DATA, 4), trains=False)
    assert [each.steps for each in orders] == [0] * 3


def test_only_so_many_passes_are_looked_at(tmp_path):
    orders, _ = passes(tmp_path / "run", DataLoader(DATA, 16), epochs=20)
    assert len(orders) == 16
