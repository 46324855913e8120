"""Losses that are written by hand, recognised by their graph."""

import re

import pytest
import torch
from torch import nn
from torch.nn import functional

from holter import Run
from holter.record.events import HandwrittenLoss
from holter.record.signals import (
    ACCURACY,
    LOSS_MEAN,
    LOSS_ROOT_SHARE,
    OUTPUT_MAX,
    TARGET_BROADCAST,
    TARGET_COUNT,
    TARGET_ENTROPY,
    TARGET_MEAN,
    TARGET_STD,
)
from holter.watching.collectors.graphs.outputs import keep
from holter.watching.collectors.graphs.terms import handwritten, terms
from watching.collectors.trainings import values, watching

ROWS, CLASSES = 6, 4
LABELS = torch.tensor([0, 3, 1, 1, 2, 0])
MASK = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
ONE_HOT = functional.one_hot(LABELS, CLASSES)
SOFT = torch.softmax(torch.arange(24.0).reshape(ROWS, CLASSES).sin(), 1)
NUMBERS = torch.linspace(-2, 3, 24).reshape(ROWS, CLASSES)
YES = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])


def outputs(columns=CLASSES):
    """What a model returns, attached to its graph as a watch does."""
    torch.manual_seed(0)
    x = torch.randn(ROWS, 3)
    made = nn.Linear(3, columns)(x)
    keep(((x,), {}), made)
    return made


def logs(out, axis=1):
    return functional.log_softmax(out, axis)


def binary(p, floor=0.0):
    return -(YES * torch.log(p + floor) + (1 - YES) * torch.log(1 - p + floor)).mean()


CLASSIFIERS = {
    "gather": lambda out: -logs(out).gather(1, LABELS[:, None]).mean(),
    "gather of the last axis": lambda out: -logs(out, -1).gather(-1, LABELS[:, None]).mean(),
    "index": lambda out: -logs(out)[torch.arange(ROWS), LABELS].mean(),
    "one-hot": lambda out: -(ONE_HOT * logs(out)).sum(1).mean(),
    "log of softmax": lambda out: -(ONE_HOT * (out.softmax(1) + 1e-12).log()).sum(1).mean(),
    "log of what is picked": lambda out: (
        -(out.softmax(1).gather(1, LABELS[:, None]).squeeze(1) + 1e-12).log().mean()
    ),
    "log of what is indexed": lambda out: (
        -out.softmax(-1)[torch.arange(ROWS), LABELS].clamp(min=1e-12).log().mean()
    ),
    "distribution": lambda out: (
        -torch.distributions.Categorical(logits=out).log_prob(LABELS).mean()
    ),
}


@pytest.mark.parametrize("loss_of", CLASSIFIERS.values(), ids=CLASSIFIERS.keys())
def test_a_cross_entropy_has_log_probabilities_and_labels(loss_of):
    out = outputs()
    (call,) = handwritten([loss_of(out)])
    assert (call.function, call.is_whole) == ("nll_loss", True)
    assert call.arguments["target"].tolist() == LABELS.tolist()
    torch.testing.assert_close(call.arguments["input"], logs(out).detach())
    torch.testing.assert_close(call.loss, functional.cross_entropy(out, LABELS).detach())


def test_targets_that_are_distributions():
    out = outputs()
    (call,) = handwritten([-(SOFT * logs(out)).sum(1).mean()])
    torch.testing.assert_close(call.arguments["target"], SOFT)
    torch.testing.assert_close(call.loss, functional.cross_entropy(out, SOFT).detach())


def test_masked_labels_are_ignored_and_weights_are_no_mask():
    out = outputs()
    losses = -logs(out)[torch.arange(ROWS), LABELS]
    (call,) = handwritten([(losses * MASK).sum() / MASK.sum()])
    assert call.arguments["target"].tolist() == [0, -100, 1, 1, -100, 0]
    torch.testing.assert_close(call.loss, losses[MASK > 0].mean().detach())
    assert handwritten([(losses * torch.linspace(-1, 1, ROWS)).mean()]) == []


REGRESSIONS = {
    "power": ("mse_loss", lambda out: ((out - NUMBERS) ** 2).mean()),
    "the other way round": ("mse_loss", lambda out: (NUMBERS - out).square().mean()),
    "sum over units": ("mse_loss", lambda out: ((out - NUMBERS) ** 2).sum(1).mean()),
    "root": ("mse_loss", lambda out: ((out - NUMBERS) ** 2).mean().sqrt()),
    "absolute": ("l1_loss", lambda out: (out - NUMBERS).abs().mean()),
    "product": ("mse_loss", lambda out: (lambda gap: (gap * gap).mean())(out - NUMBERS)),
}


@pytest.mark.parametrize(("function", "loss_of"), REGRESSIONS.values(), ids=REGRESSIONS.keys())
def test_a_difference_has_predictions_and_targets(function, loss_of):
    out = outputs()
    (call,) = handwritten([loss_of(out)])
    assert call.function == function
    torch.testing.assert_close(call.arguments["input"], out.detach())
    torch.testing.assert_close(call.arguments["target"], NUMBERS)
    torch.testing.assert_close(call.loss, getattr(functional, function)(out, NUMBERS).detach())


def test_outputs_in_half_precision_are_compared_in_float32():
    x = torch.randn(ROWS, 3)
    model = nn.Linear(3, CLASSES)
    with torch.autocast("cpu", torch.bfloat16):
        out = model(x)
    keep(((x,), {}), out)
    (call,) = handwritten([((out.float() - NUMBERS) ** 2).mean()])
    torch.testing.assert_close(call.arguments["target"], NUMBERS)
    assert handwritten([((out - NUMBERS.bfloat16()) ** 2).mean()]) == []  # too coarse


def test_a_sum_is_a_sum():
    (call,) = handwritten([((outputs() - NUMBERS) ** 2).sum()])
    assert call.arguments["reduction"] == "sum"
    torch.testing.assert_close(call.loss, (outputs() - NUMBERS).square().sum().detach())


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        (lambda out: out, NUMBERS[:, 0]),
        (lambda out: out.squeeze(1), NUMBERS[:, :1]),
        (lambda out: out[:, 0], NUMBERS[:, :1]),
    ],
    ids=["(N, 1) and (N,)", "(N,) and (N, 1)", "a column and (N, 1)"],
)
def test_operands_that_are_broadcast_have_their_own_shapes(prediction, target):
    made = prediction(outputs(1))
    (call,) = handwritten([((made - target) ** 2).mean()])
    assert call.arguments["input"].shape == made.shape
    assert call.arguments["target"].shape == target.shape
    torch.testing.assert_close(call.arguments["target"], target)


@pytest.mark.parametrize("floor", [0.0, 1e-7])
def test_a_binary_cross_entropy_has_probabilities_and_labels(floor):
    p = torch.sigmoid(outputs(1)).squeeze(1)
    (call,) = handwritten([binary(p, floor)])
    assert call.function == "binary_cross_entropy"
    torch.testing.assert_close(call.arguments["input"], p.detach() + floor)
    assert call.arguments["target"].tolist() == YES.tolist()
    torch.testing.assert_close(call.loss, functional.binary_cross_entropy(p, YES).detach())


def test_a_second_softmax_is_given_probabilities():
    out = outputs()
    (call,) = handwritten([-logs(out.softmax(1)).gather(1, LABELS[:, None]).mean()])
    assert call.function == "cross_entropy"
    torch.testing.assert_close(call.arguments["input"], out.softmax(1).detach())
    torch.testing.assert_close(call.loss, functional.cross_entropy(out.softmax(1), LABELS).detach())


def test_a_second_sigmoid_is_given_probabilities():
    p = torch.sigmoid(outputs(1)).squeeze(1)
    (call,) = handwritten([binary(torch.sigmoid(p))])
    assert call.function == "binary_cross_entropy_with_logits"
    torch.testing.assert_close(call.arguments["input"], p.detach())


OTHERS = {
    "a label that is always the same": lambda out: ((out - 1) ** 2).mean(),
    "pairs on purpose": lambda out: ((out[:, :1].unsqueeze(1) - NUMBERS[:, 0]) ** 2).mean(),
    "two parts of the model": lambda out: ((out[:, :2] - out[:, 2:]) ** 2).mean(),
    "a Gaussian likelihood": lambda out: (
        (out[:, :2] - NUMBERS[:, :2]) ** 2 / out[:, 2:].exp() + out[:, 2:]
    ).mean(),
    "a policy gradient": lambda out: (
        -(torch.distributions.Categorical(logits=out).log_prob(LABELS) * NUMBERS[:, 0]).mean()
    ),
    "a penalty": lambda out: (out**2).mean(),
    "the diagonal of a contrastive loss": lambda out: -logs(out @ out.T).diagonal().mean(),
}


@pytest.mark.parametrize("loss_of", OTHERS.values(), ids=OTHERS.keys())
def test_what_has_no_targets_is_not_recognised(loss_of):
    assert handwritten([loss_of(outputs())]) == []


def test_an_output_that_was_changed_in_place_is_not_read():
    with torch.no_grad():
        x = torch.randn(ROWS, 3)
    out = nn.Linear(3, CLASSES)(x)
    keep(((x,), {}), out)
    gap = out - NUMBERS
    out.data.add_(1)
    assert len(handwritten([(gap**2).mean()])) == 1  # `data` tells nobody
    out = nn.Linear(3, CLASSES)(x)
    keep(((x,), {}), out)
    gap = out - NUMBERS
    out.detach().add_(1)
    assert handwritten([(gap**2).mean()]) == []


def test_terms_are_what_the_loss_adds_up():
    out = outputs()
    loss = ((out - NUMBERS) ** 2).mean() + 0.1 * out.exp().mean() - out.abs().sum() / 3
    assert len(terms(loss)) == 3
    (call,) = handwritten([loss])
    assert not call.is_whole


def recorded(path, loss_of, columns=CLASSES, steps=4):
    torch.manual_seed(0)
    model = nn.Linear(3, columns)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with watching(path, model, optimizer):
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(model(torch.randn(ROWS, 3))).backward()
            optimizer.step()
    return Run.load(path)


def test_a_run_has_targets_and_predictions_of_a_handwritten_loss(tmp_path):
    run = recorded(tmp_path / "run", REGRESSIONS["power"][1])
    (event,) = run.events_of(HandwrittenLoss)
    assert event.what.function == "mse_loss"
    assert re.fullmatch(r"test_handwritten\.py:\d+", event.what.where)
    assert values(run, LOSS_ROOT_SHARE) == pytest.approx([1.0] * 4, rel=1e-5)
    assert values(run, TARGET_MEAN, "mse_loss")[-1] == pytest.approx(float(NUMBERS.mean()))
    assert values(run, TARGET_BROADCAST, "mse_loss") == [0] * 4
    assert len(values(run, OUTPUT_MAX, "mse_loss")) == 4
    assert values(run, TARGET_STD, "mse_loss")[-1] == pytest.approx(
        float(NUMBERS.std(0, correction=0)[0]), rel=1e-4
    )


def test_a_run_has_the_accuracy_of_a_handwritten_cross_entropy(tmp_path):
    run = recorded(tmp_path / "run", CLASSIFIERS["index"])
    shares = torch.bincount(LABELS) / ROWS
    entropy = float(-(shares * shares.log()).sum())
    assert values(run, TARGET_ENTROPY, "nll_loss")[-1] == pytest.approx(entropy, rel=1e-5)
    assert values(run, TARGET_COUNT, "nll_loss") == [ROWS] * 4
    assert all(0 <= value <= 1 for value in values(run, ACCURACY, "nll_loss"))
    assert len(values(run, LOSS_MEAN, "nll_loss")) == 4


def test_a_torch_loss_is_not_recorded_twice(tmp_path):
    run = recorded(tmp_path / "run", lambda out: functional.l1_loss(out, NUMBERS))
    assert run.events_of(HandwrittenLoss) == []
    assert values(run, TARGET_COUNT, "l1_loss") == [NUMBERS.numel()] * 4
