"""The module that a training step gives its inputs to."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.lab.calls import model_call, with_entry
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup


class Module(nn.Module):
    """A training as Lightning has it: its step calls the network that it holds."""

    def __init__(self, *, head: bool = False) -> None:
        super().__init__()
        self.loss = nn.CrossEntropyLoss()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.head = nn.Linear(3, 3) if head else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.net(x))


def setup(model: nn.Module, *, whole: bool) -> Setup:
    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        outputs = model(batch[0]) if whole else model.head(model.net(batch[0]))
        return functional.cross_entropy(outputs, batch[1])

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Setup.of(model, optimizer, loss, [(torch.randn(8, 4), torch.arange(8) % 3)])


def test_a_part_with_all_parameters_is_the_entry() -> None:
    model = Module()
    made = setup(model, whole=False)
    (batch,) = made.batches(1)
    with pytest.raises(InapplicableError, match="parts of the model"):
        model_call(made, batch)
    found = with_entry(made, batch)
    assert found.entry is model.net
    assert found.model is model
    assert model_call(found, batch).args[0] is batch[0]


def test_a_model_that_is_called_is_its_own_entry() -> None:
    model = Module()
    made = setup(model, whole=True)
    assert with_entry(made, made.batches(1)[0]).entry is model


def test_a_part_beside_others_is_no_entry() -> None:
    model = Module(head=True)
    made = setup(model, whole=False)
    found = with_entry(made, made.batches(1)[0])
    assert found.called is None
    with pytest.raises(InapplicableError, match="parts of the model"):
        model_call(found, made.batches(1)[0])
