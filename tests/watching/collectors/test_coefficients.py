"""The constants that a loss multiplies its terms by."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from holter import Run
from holter.record.signals import LOSS_COEFFICIENT_BALANCE, LOSS_COEFFICIENT_SIZE
from watching.collectors.trainings import values, watching

WEIGHTS = torch.tensor([3.0, -1.0, 2.0, -2.0])


def recorded(path, loss_of, steps=3):
    """Balance and size of the constants at each step, or None where there are none."""
    model = nn.Linear(2, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with watching(path, model, optimizer):
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model(torch.randn(4, 2)), step).backward()
            optimizer.step()
    run = Run.load(path)
    if LOSS_COEFFICIENT_SIZE not in run:
        return None
    return values(run, LOSS_COEFFICIENT_BALANCE), values(run, LOSS_COEFFICIENT_SIZE)


def log_probabilities(logits):
    return functional.log_softmax(logits, 1)[:, 0]


@pytest.mark.parametrize(
    ("loss_of", "size"),
    [
        (lambda out, _: -(log_probabilities(out) * WEIGHTS).mean(), 2.0),
        (lambda out, _: -(WEIGHTS * log_probabilities(out)).sum(), 8.0),
        (lambda out, _: (log_probabilities(out) * WEIGHTS).sum() / torch.tensor(4.0), 2.0),
        (
            lambda out, _: 0.5 * (log_probabilities(out) * WEIGHTS).mean() - 0.01 * out.exp().sum(),
            2.0,
        ),
        (
            lambda out, _: torch.max(
                -WEIGHTS * log_probabilities(out).exp(),
                -WEIGHTS * log_probabilities(out).exp().clamp(0.8, 1.2),
            ).mean(),
            4.0,  # of both terms
        ),
    ],
    ids=["mean", "sum", "divided", "with a bonus", "clipped"],
)
def test_advantages(tmp_path, loss_of, size):
    balance, sizes = recorded(tmp_path / "run", loss_of)
    assert [abs(each) for each in balance] == pytest.approx([0.25] * 3)
    assert sizes == pytest.approx([size] * 3)


def test_a_sum_in_a_loop_over_episodes_that_grow(tmp_path):
    def loss_of(out, step):
        logs = log_probabilities(out)
        return sum(-logs[n % 4] * (step + 1.0) for n in range(5 * (step + 1)))

    balance, sizes = recorded(tmp_path / "run", loss_of)
    assert balance == [1.0, 1.0]  # of the first step nothing is known to change
    assert sizes == [20.0, 45.0]


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda out, _: functional.cross_entropy(out, torch.zeros(4, dtype=torch.long)),
        lambda out, step: out.square().mean() + 0.1 * (step + 1) * out.abs().mean(),
        lambda out, _: functional.relu(1 - out[:, 0] * WEIGHTS.sign()).mean(),
        lambda out, _: torch.maximum(torch.zeros(4), 1 - out[:, 0] * WEIGHTS.sign()).mean(),
        lambda out, _: (out[:, 0] * out[:, 1]).mean(),
    ],
    ids=["a loss function", "a weighted term", "a hinge", "a hinge by maximum", "a product"],
)
def test_losses_without_coefficients(tmp_path, loss_of):
    assert recorded(tmp_path / "run", loss_of) is None


def test_a_constant_that_was_changed_in_place(tmp_path):
    def loss_of(out, _):
        weights = WEIGHTS.clone()
        loss = (log_probabilities(out).detach() * weights).mean() + out.mean()
        product = (out[:, 0] * weights).detach()
        weights += 1
        return loss + product.sum()

    assert recorded(tmp_path / "run", loss_of) is None
