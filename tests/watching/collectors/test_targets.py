"""What loss functions are given as targets, and the least loss without looking at inputs."""

import math

import pytest
import torch
from torch.nn import functional

from holter.record.signals import (
    TARGET_BATCH_ENTROPY,
    TARGET_BROADCAST,
    TARGET_CLASSES,
    TARGET_COUNT,
    TARGET_ENTROPY,
    TARGET_IGNORED_FRACTION,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_MAX,
    TARGET_MEAN,
    TARGET_MIN,
    TARGET_STD,
    TARGET_WEIGHT_AWAY,
    TARGET_WEIGHT_SLOPE,
)
from watching.collectors.answers import only, record_calls
from watching.collectors.trainings import values


def best_constant(loss, size):
    """The least that a loss can be for an answer that is the same for every input."""
    answer = torch.zeros(size, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([answer], max_iter=300, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = loss(answer)
        value.backward()
        return value.detach()

    optimizer.step(closure)
    return loss(answer).item()


def classes(shares=(5, 3, 2, 0)):
    return torch.cat([torch.full((n,), k) for k, n in enumerate(shares)])


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weight", [None, torch.tensor([0.2, 3.0, 1.0, 0.5])])
@pytest.mark.parametrize("soft", [False, True])
def test_the_entropy_is_the_loss_of_the_best_constant(tmp_path, smoothing, weight, soft):
    target = classes()
    if soft:
        torch.manual_seed(0)
        target = torch.rand(10, 4).softmax(1)

    def loss(out):
        given = target.to(out.dtype) if soft else target
        wide = None if weight is None else weight.to(out.dtype)
        return functional.cross_entropy(
            out.expand(10, 4), given, weight=wide, label_smoothing=smoothing
        )

    run = record_calls(tmp_path / "run", torch.zeros(1, 4), loss, steps=3)
    wanted = best_constant(loss, (1, 4))
    assert values(run, TARGET_ENTROPY, "cross_entropy") == pytest.approx([wanted] * 3, rel=1e-4)
    assert values(run, TARGET_BATCH_ENTROPY, "cross_entropy") == pytest.approx(
        [wanted] * 3, rel=1e-4
    )


@pytest.mark.parametrize("weight", [None, torch.tensor(4.0), torch.tensor([1.0, 0.5, 3.0])])
def test_the_entropy_of_yes_and_no(tmp_path, weight):
    torch.manual_seed(0)
    target = (torch.rand(20, 3) < torch.tensor([0.1, 0.5, 0.8])).float()

    def loss(out):
        wide = None if weight is None else weight.to(out.dtype)
        return functional.binary_cross_entropy_with_logits(
            out.expand(20, 3), target.to(out.dtype), pos_weight=wide
        )

    run = record_calls(tmp_path / "run", torch.zeros(1, 3), loss)
    name = "binary_cross_entropy_with_logits"
    wanted = best_constant(loss, (1, 3))
    assert only(run, TARGET_ENTROPY, name) == pytest.approx(wanted, rel=1e-4)
    mean = target.mean(0)
    assert only(run, TARGET_LARGEST_CLASS_FRACTION, name) == pytest.approx(
        float(torch.maximum(mean, 1 - mean).mean())
    )
    assert TARGET_BATCH_ENTROPY not in run


@pytest.mark.parametrize(
    ("power", "shares", "away"),
    [
        (1, (0.1, 0.2, 0.5), 1),  # positives / negatives
        (-1, (0.1, 0.2, 0.8), 0),  # negatives / positives: below 1 for what is frequent
        (0, (0.1, 0.2, 0.8), 0),  # all ones
        (1, (0.3,), 1),
    ],
)
def test_weights_of_labels_beside_their_odds(tmp_path, power, shares, away):
    name = "binary_cross_entropy_with_logits"
    share = torch.tensor(shares)
    target = (torch.arange(20).unsqueeze(1) < 20 * share).float()
    run = record_calls(
        tmp_path / "run",
        torch.zeros(20, len(shares)),
        lambda out: functional.binary_cross_entropy_with_logits(
            out, target, pos_weight=(share / (1 - share)) ** power
        ),
    )
    assert only(run, TARGET_WEIGHT_SLOPE, name) == pytest.approx(power, abs=1e-5)
    assert only(run, TARGET_WEIGHT_AWAY, name) == away


def test_one_weight_for_many_units(tmp_path):
    target = torch.zeros(8, 5, 5)
    target[:, 1:3, 1:4] = 1
    odds = target.mean() / (1 - target.mean())
    run = record_calls(
        tmp_path / "run",
        torch.zeros(8, 5, 5),
        lambda out: functional.binary_cross_entropy_with_logits(out, target, pos_weight=odds),
    )
    name = "binary_cross_entropy_with_logits"
    assert only(run, TARGET_WEIGHT_SLOPE, name) == pytest.approx(1, abs=1e-5)


def test_weights_of_single_elements_leave_it_open(tmp_path):
    run = record_calls(
        tmp_path / "run",
        torch.zeros(4, 2),
        lambda out: functional.binary_cross_entropy_with_logits(
            out, torch.ones(4, 2), weight=torch.rand(4, 2)
        ),
    )
    assert TARGET_ENTROPY not in run
    assert only(run, TARGET_COUNT, "binary_cross_entropy_with_logits") == 8


@pytest.mark.parametrize("name", ["binary_cross_entropy", "soft_margin_loss"])
def test_two_classes(tmp_path, name):
    target = torch.tensor([1.0, 0.0, 0.0, 0.0])
    if name == "soft_margin_loss":
        target = target * 2 - 1
    run = record_calls(
        tmp_path / "run",
        torch.full((4,), 0.3),
        lambda out: getattr(functional, name)(out, target),
    )
    entropy = -0.25 * math.log(0.25) - 0.75 * math.log(0.75)
    assert only(run, TARGET_ENTROPY, name) == pytest.approx(entropy)
    assert only(run, TARGET_BATCH_ENTROPY, name) == pytest.approx(entropy)
    assert only(run, TARGET_LARGEST_CLASS_FRACTION, name) == 0.75


def test_labels_add_up_over_the_run(tmp_path):
    batches = [torch.tensor(each) for each in ([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 2, -100])]
    run = record_calls(
        tmp_path / "run",
        torch.zeros(4, 5),
        lambda out, step: functional.cross_entropy(out, batches[step]),
        steps=3,
    )
    owner = "cross_entropy"
    assert values(run, TARGET_CLASSES, owner) == [1, 2, 3]
    assert values(run, TARGET_COUNT, owner) == [4, 4, 3]
    assert values(run, TARGET_IGNORED_FRACTION, owner) == [0, 0, 0.25]
    assert values(run, TARGET_LARGEST_CLASS_FRACTION, owner) == pytest.approx([1, 1 / 2, 5 / 11])
    assert values(run, TARGET_ENTROPY, owner)[:2] == pytest.approx([0, math.log(2)], abs=1e-6)
    assert values(run, TARGET_BATCH_ENTROPY, owner) == pytest.approx([0, 0, math.log(3)], abs=1e-6)


def test_a_batch_of_nothing_but_ignored_targets(tmp_path):
    batches = [torch.full((4,), -100), torch.tensor([0, 1, 0, 1])]
    run = record_calls(
        tmp_path / "run",
        torch.zeros(4, 2),
        lambda out, step: functional.cross_entropy(out, batches[step]),
        steps=2,
    )
    owner = "cross_entropy"
    assert values(run, TARGET_COUNT, owner) == [0, 4]
    assert values(run, TARGET_IGNORED_FRACTION, owner) == [1, 0]
    assert values(run, TARGET_ENTROPY, owner) == pytest.approx([math.nan, math.log(2)], nan_ok=True)


def test_heads_with_different_numbers_of_classes(tmp_path):
    run = record_calls(
        tmp_path / "run",
        torch.zeros(6, 6),
        lambda out: functional.cross_entropy(out, torch.arange(6)),
        lambda out: functional.cross_entropy(out[:, :2], torch.arange(6) % 2),
        steps=2,
    )
    wanted = (math.log(6) + math.log(2)) / 2
    assert values(run, TARGET_ENTROPY, "cross_entropy") == pytest.approx([wanted] * 2)
    assert values(run, TARGET_COUNT, "cross_entropy") == [12, 12]


def test_numbers(tmp_path):
    torch.manual_seed(0)
    batches = torch.randn(3, 8, 2) * torch.tensor([1.0, 3.0]) + torch.tensor([1e6, -5.0])
    run = record_calls(
        tmp_path / "run",
        torch.zeros(8, 2),
        lambda out, step: functional.mse_loss(out, batches[step]),
        steps=3,
    )
    for step in range(3):
        seen = batches[: step + 1].reshape(-1, 2).double()
        std = float(seen.var(0, correction=0).mean().sqrt())
        assert values(run, TARGET_MEAN, "mse_loss")[step] == pytest.approx(float(seen.mean()))
        assert values(run, TARGET_STD, "mse_loss")[step] == pytest.approx(std, rel=1e-4)
        assert values(run, TARGET_MIN, "mse_loss")[step] == float(batches[step].min())
        assert values(run, TARGET_MAX, "mse_loss")[step] == float(batches[step].max())
    assert values(run, TARGET_BROADCAST, "mse_loss") == [0, 0, 0]


def test_sequences_of_any_length_have_one_mean(tmp_path):
    torch.manual_seed(0)
    batches = [torch.randn(4, 3), torch.randn(4, 5) + 2, torch.randn(4, 3) - 1]
    run = record_calls(
        tmp_path / "run",
        torch.zeros(4, 5),
        lambda out, step: functional.l1_loss(out[:, : batches[step].shape[1]], batches[step]),
        steps=3,
    )
    seen = torch.cat([each.reshape(-1) for each in batches])
    assert values(run, TARGET_MEAN, "l1_loss")[2] == pytest.approx(float(seen.mean()), rel=1e-5)
    assert values(run, TARGET_STD, "l1_loss")[2] == pytest.approx(
        float(seen.std(correction=0)), rel=1e-5
    )


def test_one_target_that_is_not_finite_does_not_spoil_the_rest(tmp_path):
    batches = [torch.tensor(each) for each in ([1.0, math.nan], [1.0, 3.0], [math.inf, 0.0])]
    run = record_calls(
        tmp_path / "run",
        torch.zeros(2),
        lambda out, step: functional.mse_loss(out, batches[step]),
        steps=3,
    )
    assert values(run, TARGET_MEAN, "mse_loss")[1:] == [2, 2]
    assert values(run, TARGET_STD, "mse_loss")[1:] == [1, 1]
    assert math.isnan(values(run, TARGET_MAX, "mse_loss")[0])


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("prediction", "target", "wanted"),
    [
        ((4, 1), (4,), 1),
        ((4,), (4, 1), 1),
        ((4, 1), (4, 1), 0),
        ((1, 1), (1,), 0),
        ((4, 3), (1, 3), 0),
        ((4, 3), (), 0),
        ((4, 4), (4,), 1),
        ((4, 3), (3,), 0),
    ],
)
def test_broadcasts_that_make_more_of_both(tmp_path, prediction, target, wanted):
    run = record_calls(
        tmp_path / "run",
        torch.zeros(prediction),
        lambda out: functional.smooth_l1_loss(out, torch.zeros(target)),
    )
    assert only(run, TARGET_BROADCAST, "smooth_l1_loss") == wanted


def test_every_loss_function_can_be_read(tmp_path):
    out = torch.rand(4, 3).sigmoid()
    labels, flags, numbers = torch.tensor([0, 1, 2, 0]), torch.ones(4, 3), torch.rand(4, 3)
    run = record_calls(
        tmp_path / "run",
        out,
        lambda out: functional.cross_entropy(out, labels),
        lambda out: functional.nll_loss(out, labels),
        lambda out: functional.multi_margin_loss(out, labels),
        lambda out: functional.binary_cross_entropy(out, flags),
        lambda out: functional.binary_cross_entropy_with_logits(out, flags),
        lambda out: functional.multilabel_soft_margin_loss(out, flags),
        lambda out: functional.soft_margin_loss(out, flags),
        lambda out: functional.gaussian_nll_loss(out, numbers, torch.ones(4, 1)),
        lambda out: functional.huber_loss(out, numbers),
        lambda out: functional.poisson_nll_loss(out, numbers),
    )
    assert run.meta.notes == ()
    assert len(run[TARGET_COUNT]) == 10
