"""How losses are reduced, and what becomes of them until backward."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from holter import Run
from holter.record.signals import (
    ALIGNMENT_BLANK_FRACTION,
    ALIGNMENT_FRAMES,
    ALIGNMENT_USED,
    LOSS_ELEMENTS,
    LOSS_MEAN,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
)
from watching.collectors.answers import only, record_calls
from watching.collectors.trainings import values, watching


@pytest.mark.parametrize(
    ("how", "wanted"),
    [({}, 0), ({"reduction": "sum"}, 1), ({"reduction": "none"}, 0), ({"size_average": False}, 1)],
)
@pytest.mark.filterwarnings("ignore:size_average")
def test_sums(tmp_path, how, wanted):
    run = record_calls(
        tmp_path / "run",
        torch.ones(4, 2),
        lambda out: functional.mse_loss(out, torch.zeros(4, 2), **how),
        lambda out: nn.L1Loss()(out, torch.zeros(4, 2)),
    )
    assert only(run, LOSS_SUMMED, "mse_loss") == wanted
    assert only(run, LOSS_SUMMED, "l1_loss") == 0


def divided(loss):
    return loss / 4


def divided_in_place(loss):
    loss /= 4
    return loss


@pytest.mark.parametrize(
    ("change", "wanted"), [(lambda loss: loss, 1), (divided, 0.25), (divided_in_place, 0.25)]
)
@pytest.mark.parametrize("scaled", [False, True])
def test_the_share_of_a_mean_that_goes_into_backward(tmp_path, change, wanted, scaled):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", enabled=scaled)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            for _ in range(4):
                loss = functional.mse_loss(model(torch.randn(5, 3)), torch.ones(5, 1))
                scaler.scale(change(loss)).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS_ROOT_SHARE) == pytest.approx([wanted] * 3)


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_the_share_of_a_sum_is_its_number_of_elements(tmp_path, reduction):
    run = record_calls(
        tmp_path / "run",
        torch.full((4, 2), 3.0),
        lambda out: functional.mse_loss(out, torch.zeros(4, 2), reduction=reduction),
    )
    assert values(run, LOSS_ROOT_SHARE) == [8]
    assert only(run, LOSS_MEAN, "mse_loss") == 9
    if reduction == "sum":
        assert only(run, LOSS_ELEMENTS, "mse_loss") == 8


def test_no_share_where_the_elements_are_unknown(tmp_path):
    lengths = torch.tensor([3, 3])
    run = record_calls(
        tmp_path / "run",
        torch.zeros(3, 2, 4),
        lambda out: functional.ctc_loss(
            out.log_softmax(2), torch.ones(2, 2).long(), lengths, lengths - 1, reduction="sum"
        ),
    )
    assert LOSS_ROOT_SHARE not in run
    assert LOSS_MEAN not in run
    assert only(run, LOSS_SUMMED, "ctc_loss") == 1


@pytest.mark.parametrize("joined", [False, True])
def test_blanks_among_the_targets_of_an_alignment(tmp_path, joined):
    lengths, targets = torch.tensor([3, 3]), torch.tensor([[0, 1], [2, 3]])
    run = record_calls(
        tmp_path / "run",
        torch.zeros(3, 2, 4),
        lambda out: functional.ctc_loss(
            out.log_softmax(2), targets.flatten() if joined else targets, lengths, lengths - 1
        ),
    )
    assert only(run, ALIGNMENT_BLANK_FRACTION, "ctc_loss") == 0.25
    assert only(run, ALIGNMENT_FRAMES, "ctc_loss") == 3
    assert only(run, ALIGNMENT_USED, "ctc_loss") == 1.0


def test_no_share_among_several_losses(tmp_path):
    run = record_calls(
        tmp_path / "run",
        torch.ones(4, 2),
        lambda out: functional.mse_loss(out, torch.zeros(4, 2)),
        lambda out: functional.l1_loss(out, torch.zeros(4, 2)),
    )
    assert LOSS_ROOT_SHARE not in run


def test_losses_of_zero_do_not_spoil_the_mean(tmp_path):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(tmp_path / "run", model, optimizer):
        for target in (model(torch.ones(1, 3)).detach(), torch.zeros(1, 1)):
            functional.mse_loss(model(torch.ones(1, 3)), target).backward()
        optimizer.step()
    assert values(Run.load(tmp_path / "run"), LOSS_ROOT_SHARE) == [1]
