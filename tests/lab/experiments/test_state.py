"""Whatever is done to a training, it is as before afterwards; and where it is not, that is said."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from setups import KINDS
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from holter.lab.randomness import same_randomness
from holter.lab.setup import Setup
from holter.lab.state import NotRestoredError, State, kept


def full() -> Setup:
    """A setup with everything that may have a state, in the middle of its training."""
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 4), torch.randint(2, (32,)))
    loader = DataLoader(data, 8, shuffle=True, generator=torch.Generator().manual_seed(5))
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
    model.counter = 0
    model.seen = torch.zeros(2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    setup = Setup.of(
        model,
        optimizer,
        nn.CrossEntropyLoss(),
        loader,
        scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 2),
        scaler=scaler,
        others=[torch.optim.swa_utils.AveragedModel(model)],
    )
    for batch in setup.batches(2):
        setup.step(batch)
    return setup


def swap_mode(setup: Setup) -> None:
    setup.model[1].eval()


def change_attributes(setup: Setup) -> None:
    setup.model.counter += 1
    setup.model.seen += 1


def freeze(setup: Setup) -> None:
    setup.model[0].weight.requires_grad_(False)


def forget_gradients(setup: Setup) -> None:
    setup.model.zero_grad(set_to_none=True)


def change_a_rate(setup: Setup) -> None:
    setup.optimizers[0].param_groups[0]["lr"] = 7.0


def new_state(setup: Setup) -> None:
    setup.optimizers[0].state.clear()
    setup.step(next(setup.endless()))


def step_the_schedule(setup: Setup) -> None:
    setup.optimizers[0].step()
    setup.schedulers[0].step()
    setup.schedulers[0].step()


def average(setup: Setup) -> None:
    setup.others[0].update_parameters(setup.model)


def draw(setup: Setup) -> None:
    torch.rand(3)
    np.random.rand(3)
    random.random()


def iterate(setup: Setup) -> None:
    list(setup.train)


def train(setup: Setup) -> None:
    for batch in setup.batches(4):
        setup.step(batch)


def spoil(setup: Setup) -> None:
    with torch.no_grad():
        for each in setup.model.parameters():
            each.fill_(torch.nan)


DEEDS: list[Callable[[Setup], None]] = [
    *(swap_mode, change_attributes, freeze, forget_gradients, change_a_rate, new_state),
    *(step_the_schedule, average, draw, iterate, train, spoil),
]


@pytest.mark.parametrize("deed", DEEDS)
def test_a_deed_is_noticed_and_undone(deed: Callable[[Setup], None]) -> None:
    setup = full()
    state = State(setup)
    deed(setup)
    with pytest.raises(NotRestoredError):
        state.prove()
    state.restore()
    state.prove()
    assert State(setup).digest == state.digest


@pytest.mark.parametrize("deed", DEEDS)
def test_training_goes_on_as_if_nothing_had_been(deed: Callable[[Setup], None]) -> None:
    alone, disturbed = full(), full()
    torch.manual_seed(2)
    losses = [alone.step(batch) for batch in alone.batches(3)]
    torch.manual_seed(2)
    with kept(disturbed):
        deed(disturbed)
    assert [disturbed.step(batch) for batch in disturbed.batches(3)] == losses
    for ours, theirs in zip(disturbed.model.parameters(), alone.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_tensors_stay_the_same_objects() -> None:
    setup = full()
    parameter = setup.model[0].weight
    memory, state = parameter.data_ptr(), setup.optimizers[0].state[parameter]["exp_avg"]
    with kept(setup):
        train(setup)
    assert setup.model[0].weight is parameter
    assert parameter.data_ptr() == memory
    assert setup.optimizers[0].state[parameter]["exp_avg"] is state


def test_an_exception_passes_and_restores() -> None:
    setup = full()
    before = State(setup).digest
    with pytest.raises(KeyboardInterrupt), kept(setup):
        train(setup)
        raise KeyboardInterrupt
    assert State(setup).digest == before


def test_same_randomness_draws_the_same() -> None:
    setup = KINDS["classifier"]()
    with same_randomness(setup):
        first = torch.rand(3)
    assert torch.equal(torch.rand(3), first)


def test_the_order_of_keys_is_no_state() -> None:
    setup = full()
    state = State(setup)
    (optimizer,) = setup.optimizers
    for entries in optimizer.state.values():
        for name in sorted(entries, reverse=True):
            entries[name] = entries.pop(name)
    state.prove()
