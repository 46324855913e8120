"""The reference model: what it stands in for, what it leaves alone, what it sees."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from holter.lab.changes.reference import REFERENCE_MODEL, Reference


class Several(nn.Module):
    """A model of two inputs that returns an answer and a state."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        return self.layer(x), torch.zeros(1, len(x), 5) + codes.sum()


def answered(model: nn.Module, *inputs: Tensor) -> tuple[object, int]:
    """The answer of a model under the change, and how often something was altered."""
    altered: list[None] = []
    with REFERENCE_MODEL.entered(lambda: altered.append(None)):
        return model(*inputs), len(altered)


def test_an_answer_is_replaced_and_a_state_is_kept() -> None:
    model, x, codes = Several(), torch.randn(8, 3), torch.randint(4, (8, 2))
    (answer, state), altered = answered(model, x, codes)  # type: ignore[misc]
    own, own_state = model(x, codes)
    assert altered == 1
    assert answer.shape == own.shape
    assert not torch.equal(answer, own)
    assert torch.equal(state, own_state)


class Made(nn.Module):
    """A model whose output is made from its input by a function."""

    def __init__(self, make: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.layer, self.make = nn.Linear(4, 4), make

    def forward(self, x: Tensor) -> object:
        return self.make(self.layer(x))


@pytest.mark.parametrize(
    "make",
    [
        lambda y: y,  # as large as the input, like an autoencoder
        lambda y: (y[:, :2], y.mean()),  # with a loss
        lambda y: (y[:, :2], y[:, 2:3], y[:, 3:]),  # with a mean and a variance
        lambda y: {"logits": y},
    ],
    ids=["autoencoder", "loss", "several", "mapping"],
)
def test_it_leaves_alone_what_it_cannot_stand_in_for(make: Callable[[Tensor], object]) -> None:
    _, altered = answered(Made(make), torch.randn(8, 4))
    assert altered == 0


def test_it_does_not_look_ahead() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(10, (4, 6))
    model = Reference([tokens], torch.zeros(4, 6, 10)).eval()
    changed = tokens.clone()
    changed[:, 4] = (tokens[:, 4] + 1) % 10
    before, after = model([tokens]), model([changed])
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.equal(before[:, 4:], after[:, 4:])
    assert model([torch.randint(10, (4, 9))]).shape == (4, 9, 10)


def test_the_training_draws_the_same_random_numbers() -> None:
    model, x = nn.Linear(3, 2), torch.randn(8, 3)
    torch.manual_seed(0)
    answered(model, x)
    with_reference = torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(torch.rand(3), with_reference)


@pytest.mark.parametrize("column", [0, 1])
def test_it_reads_every_column_of_whole_numbers(column: int) -> None:
    torch.manual_seed(0)
    x, codes = torch.randn(64, 3), torch.randint(4, (64, 2))
    model = Reference([x, codes], torch.zeros(64))
    targets = (codes[:, column] > 1).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model([x, codes]), targets)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
