"""Rows for the comparison with simple models: from loaders, from calls, and their targets."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.scripts.held_out import rows_setup
from holter.scripts.keepsake import TrainingCall
from holter.scripts.rows import _ROWS, _TABLE_BYTES, Rows, _Call, _Table
from holter.scripts.scores import flexible_scores
from holter.scripts.targets import form_of, target_beside
from holter.watching.frames import Frames

X, Y = torch.randn(300, 4), torch.randint(3, (300,))


def kept(model: nn.Module, batch: Any, inputs: Tensor, targets: Tensor) -> TrainingCall:
    """A call of a training, as the keepsake has it."""
    output = model(inputs).detach()
    loss = ("cross_entropy", {"input": output, "target": targets})
    return TrainingCall(((inputs,), {}), frozenset(), output, loss, batch=batch)


def loaded(model: nn.Module, call: TrainingCall) -> Setup:
    """What `examine` makes of two loaders."""
    train = DataLoader(TensorDataset(X[:200], Y[:200]), 32, shuffle=True)
    valid = DataLoader(TensorDataset(X[200:], Y[200:]), 32)
    setup = Setup.of(model, torch.optim.SGD(model.parameters(), 0.0), nn.CrossEntropyLoss(), train)
    setup.loaders.update(valid=valid)  # type: ignore[attr-defined]
    return rows_setup(setup, model, call, Rows(), seconds=5)


def test_rows_of_loaders_are_each_served_once() -> None:
    model = nn.Linear(4, 3)
    batch = [X[:32], Y[:32]]
    made = loaded(model, kept(model, batch, *batch))
    held = torch.cat([each["args"][0] for each in made.train])
    assert torch.equal(held.sum(1).sort().values, X[:200].sum(1).sort().values)
    first = next(iter(made.valid or ()))
    wanted = functional.cross_entropy(model(first["args"][0]), first["target"])
    assert torch.equal(made.loss(first), wanted)


def test_batches_that_are_changed_on_their_way_are_not_compared() -> None:
    model = nn.Linear(4, 3)
    batch = [X[:32], Y[:32]]
    with pytest.raises(InapplicableError, match="not part of a loaded batch"):
        loaded(model, kept(model, batch, 2 * X[:32], Y[:32]))
    with pytest.raises(InapplicableError, match="target"):
        loaded(model, kept(model, batch, X[:32], 2 - Y[:32]))


@pytest.mark.parametrize(
    "arrange",
    [
        lambda made: made,
        lambda made: made.reshape(-1, made.shape[-1]),
        lambda made: made.movedim(-1, 1),
        lambda made: made.transpose(0, 1).reshape(-1, made.shape[-1]),
    ],
)
def test_scores_are_made_alike_of_batches_of_another_size(
    arrange: Callable[[Tensor], Tensor],
) -> None:
    own, other = torch.randn(6, 5, 3), torch.randn(4, 5, 3)
    scores = flexible_scores(own, arrange(own))
    assert scores is not None
    assert torch.equal(scores(own), arrange(own))
    assert torch.equal(scores(other), arrange(other))
    assert flexible_scores(own, own.exp()) is None


def test_a_table_is_bounded_in_rows_and_bytes() -> None:
    small, wide = _Table(), _Table()
    for _ in range(9):
        small.add(_Call(((torch.randn(500, 2),), {}), None), torch.zeros(500))
        wide.add(_Call(((torch.zeros(50, 2**16),), {}), None), torch.zeros(50))
    assert sum(len(batch["target"]) for batch in small.distinct()) == _ROWS
    assert wide.is_full
    batch = 50 * 2**16 * 4
    assert wide._bytes <= _TABLE_BYTES + batch + 50 * 4


def test_rows_are_kept_once() -> None:
    table, x = _Table(), torch.arange(6.0)[:, None]
    for _ in range(3):
        table.add(_Call(((x,), {}), None), x[:, 0])
    (batch,) = table.distinct()
    assert len(batch["target"]) == 6


def test_the_target_is_the_only_variable_that_can_be_it() -> None:
    form = form_of(Y[:32], ((X[:32],), {}))
    assert form is not None

    def evaluate(inputs: Tensor, labels: Tensor) -> Tensor | None:
        return target_beside(form, ((inputs,), {}), inputs @ torch.ones(4), Frames())

    def unsure(inputs: Tensor, one: Tensor, another: Tensor) -> Tensor | None:
        return target_beside(form, ((inputs,), {}), inputs @ torch.ones(4), Frames())

    def named(inputs: Tensor, groups: Tensor, labels: Tensor) -> Tensor | None:
        return target_beside(form, ((inputs,), {}), inputs @ torch.ones(4), Frames())

    found = evaluate(X[:50], Y[:50])
    assert found is not None and torch.equal(found, Y[:50])
    assert unsure(X[:50], Y[:50].clone(), Y[50:100].clone()) is None
    found = named(X[:50], Y[50:100].clone(), Y[:50])
    assert found is not None and torch.equal(found, Y[:50])
