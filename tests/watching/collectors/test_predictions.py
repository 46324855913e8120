"""What loss functions are given as predictions, and how many of them are right."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from holter import Run
from holter.record.signals import (
    ACCURACY,
    OUTPUT_LOG_NORMALISER,
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_MAX,
    OUTPUT_MIN,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_SIZE,
    OUTPUT_SPREAD,
    OUTPUT_UNITS,
    VAL_ACCURACY,
)
from holter.watching.collectors import loss_calls
from holter.watching.collectors.moments import Depth, LossComputed
from watching.collectors.answers import only, record_calls
from watching.collectors.trainings import values, watching


@pytest.fixture
def logits():
    torch.manual_seed(0)
    return torch.randn(40, 5) * 3


LABELS = torch.arange(40) % 5


def test_logits_over_classes(tmp_path, logits):
    run = record_calls(tmp_path / "run", logits, lambda out: functional.cross_entropy(out, LABELS))

    def read(signal):
        return only(run, signal, "cross_entropy")

    assert read(OUTPUT_MIN) == pytest.approx(float(logits.min()))
    assert read(OUTPUT_MAX) == pytest.approx(float(logits.max()))
    assert read(OUTPUT_SIZE) == pytest.approx(float(logits.square().mean().sqrt()))
    assert read(OUTPUT_SPREAD) == pytest.approx(float(logits.var(0).mean().sqrt()))
    assert read(OUTPUT_LOG_NORMALISER) == pytest.approx(float(logits.logsumexp(1).mean()))
    assert read(OUTPUT_UNITS) == 5
    assert read(OUTPUT_PROBABILITY_FRACTION) == 0
    assert read(OUTPUT_LOG_PROBABILITY_FRACTION) == 0
    assert read(ACCURACY) == pytest.approx(float((logits.argmax(1) == LABELS).float().mean()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_probabilities_and_their_logarithms_are_told(tmp_path, logits, dtype):
    for name, given in (("p", logits.softmax(1)), ("log", logits.log_softmax(1))):
        run = record_calls(
            tmp_path / name, given.to(dtype), lambda out: functional.nll_loss(out, LABELS)
        )
        assert only(run, OUTPUT_PROBABILITY_FRACTION, "nll_loss") == (name == "p")
        assert only(run, OUTPUT_LOG_PROBABILITY_FRACTION, "nll_loss") == (name == "log")


def test_single_logits(tmp_path):
    run = record_calls(
        tmp_path / "run",
        torch.tensor([[-1.0, 2.0], [0.5, 0.5], [0.2, 3.0], [-4.0, -1.0]]),
        lambda out: functional.binary_cross_entropy_with_logits(
            out, target=torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        ),
        lambda out: functional.binary_cross_entropy(
            torch.sigmoid(out), torch.tensor([[0.0, 1.0]] * 4)
        ),
    )
    logit, probability = "binary_cross_entropy_with_logits", "binary_cross_entropy"
    assert only(run, ACCURACY, logit) == pytest.approx(6 / 8)
    assert only(run, ACCURACY, probability) == pytest.approx(5 / 8)
    assert only(run, OUTPUT_PROBABILITY_FRACTION, logit) == pytest.approx(1 / 4)
    assert only(run, OUTPUT_PROBABILITY_FRACTION, probability) == 1
    assert only(run, OUTPUT_UNITS, logit) == 2
    assert OUTPUT_LOG_NORMALISER not in run


def test_numbers_have_no_accuracy(tmp_path):
    given = torch.tensor([1.0, 2.0, 6.0])
    run = record_calls(
        tmp_path / "run", given, lambda out: functional.mse_loss(out, torch.zeros(3))
    )
    assert only(run, OUTPUT_SPREAD, "mse_loss") == pytest.approx(float(given.std()))
    assert only(run, OUTPUT_UNITS, "mse_loss") == 1
    assert ACCURACY not in run
    assert OUTPUT_PROBABILITY_FRACTION not in run


@pytest.mark.parametrize(
    ("targets", "has_accuracy"),
    [
        ([0.0, 1.0, 1.0, 0.0], True),
        ([0.1, 0.9, 0.9, 0.1], True),
        ([0.9, 0.9, 0.9, 0.9], True),
        ([0.0, 0.2, 0.7, 1.0], False),
        ([0.31, 0.2, 0.7, 0.6], False),
    ],
    ids=["classes", "smoothed", "one side of a GAN", "pixels", "soft"],
)
def test_yes_or_no_has_an_accuracy_and_shades_have_none(tmp_path, targets, has_accuracy):
    logits, target = torch.tensor([-1.0, 2.0, 0.5, 0.5]), torch.tensor(targets)
    run = record_calls(
        tmp_path / "run",
        logits,
        lambda out: functional.binary_cross_entropy_with_logits(out, target),
        lambda out: functional.binary_cross_entropy(torch.sigmoid(out), target),
    )
    assert (ACCURACY in run) is has_accuracy
    assert OUTPUT_UNITS in run


@pytest.mark.parametrize(
    ("targets", "has_accuracy"),
    [(lambda x: x, False), (lambda x: x.view(-1, 4), False), (torch.clone, True)],
    ids=["the input", "a view of it", "others"],
)
def test_what_rebuilds_its_input_has_no_accuracy(tmp_path, targets, has_accuracy):
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            for part in (torch.rand(8, 4) > 0.5).float().split(4):  # accumulated
                functional.binary_cross_entropy_with_logits(model(part), targets(part)).backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert (ACCURACY in run) is has_accuracy
    assert OUTPUT_UNITS in run


def test_ignored_targets_do_not_count(tmp_path, logits):
    labels = torch.where(torch.arange(40) % 2 == 0, logits.argmax(1), 9)
    labels[0] = (labels[0] + 1) % 5
    run = record_calls(
        tmp_path / "run", logits, lambda out: nn.CrossEntropyLoss(ignore_index=9)(out, labels)
    )
    assert only(run, ACCURACY, "cross_entropy") == pytest.approx(19 / 20)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (4, 5, 3), (2, 5, 3, 2)])
def test_classes_lie_along_the_second_axis(tmp_path, shape):
    torch.manual_seed(0)
    given = torch.randn(shape)
    axis = min(len(shape) - 1, 1)
    soft = given.softmax(axis)
    run = record_calls(
        tmp_path / "run",
        given,
        lambda out: functional.cross_entropy(out, given.argmax(axis)),
        lambda out: functional.cross_entropy(out, soft),
    )
    assert only(run, ACCURACY, "cross_entropy") == 1
    assert only(run, OUTPUT_UNITS, "cross_entropy") == 5
    assert (OUTPUT_SPREAD in run) == (len(shape) > 1)


def test_several_calls_are_one_step(tmp_path, logits):
    run = record_calls(
        tmp_path / "run",
        logits,
        lambda out: functional.cross_entropy(out[:10], out[:10].argmax(1)),
        lambda out: functional.cross_entropy(out[10:], out[10:].argmin(1)),
    )
    assert only(run, ACCURACY, "cross_entropy") == pytest.approx(10 / 40)
    assert only(run, OUTPUT_MAX, "cross_entropy") == pytest.approx(float(logits.max()))


def test_micro_batches_too(tmp_path, logits):
    model = nn.Linear(5, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            for part in logits.split(10):
                functional.cross_entropy(model(part), torch.zeros(10).long()).backward()
            optimizer.step()
    wanted = float((model(logits).argmax(1) == 0).float().mean())
    assert values(Run.load(tmp_path / "run"), ACCURACY, "cross_entropy") == pytest.approx(
        [wanted] * 2
    )


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_data(tmp_path, logits, value):
    logits[3, 2] = value
    run = record_calls(tmp_path / "run", logits, lambda out: functional.cross_entropy(out, LABELS))
    assert run.meta.notes == ()
    assert not math.isfinite(only(run, OUTPUT_MAX, "cross_entropy"))
    assert 0 <= only(run, ACCURACY, "cross_entropy") <= 1


def test_predictions_that_cannot_be_read(tmp_path):
    empty = torch.zeros(0, 3)
    run = record_calls(
        tmp_path / "run",
        torch.zeros(4, 3),
        lambda out: functional.cross_entropy(out[:0] + empty, torch.zeros(0).long()),
        lambda out: functional.triplet_margin_loss(out, out + 1, out - 1),
        lambda out: functional.mse_loss(out.to(torch.complex64).abs(), torch.zeros(4, 3)),
        lambda out: functional.mse_loss(torch.func.vmap(functional.l1_loss)(out, out), out[:, 0]),
    )
    assert run.meta.notes == ()
    assert list(run[OUTPUT_SIZE]) == ["mse_loss"]


def test_large_predictions_are_thinned_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(loss_calls, "LIMIT", 100)
    torch.manual_seed(0)
    given = torch.randn(6, 4, 9, 5)
    run = record_calls(
        tmp_path / "run",
        given,
        lambda out: functional.cross_entropy(out, given.argmax(1)),
        lambda out: functional.cross_entropy(out, given.softmax(1)),
        lambda out: functional.binary_cross_entropy_with_logits(out, (given > 0).float()),
    )
    assert only(run, ACCURACY, "cross_entropy") == 1
    assert only(run, ACCURACY, "binary_cross_entropy_with_logits") == 1
    assert only(run, OUTPUT_MAX, "cross_entropy") == pytest.approx(float(given.max()))


def train(model, optimizer, x, y):
    optimizer.zero_grad()
    functional.cross_entropy(model(x), y).backward()
    optimizer.step()


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Linear(5, 5)


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def test_training_in_eval_mode_is_read_too(tmp_path, model, optimizer, logits):
    model.eval()
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            train(model, optimizer, logits, LABELS)
    run = Run.load(tmp_path / "run")
    assert len(run[ACCURACY]["cross_entropy"]) == 3
    assert VAL_ACCURACY not in run


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_accuracy_of_validation(tmp_path, model, optimizer, logits, context):
    wanted = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(2):
            model.train()
            train(model, optimizer, logits, LABELS)
            model.eval()
            with context():
                for x, y in zip(logits.split(15), LABELS.split(15), strict=True):
                    functional.cross_entropy(model(x), y)
            wanted.append(float((model(logits).argmax(1) == LABELS).float().mean()))
    run = Run.load(tmp_path / "run")
    assert values(run, VAL_ACCURACY, "cross_entropy") == pytest.approx(wanted)
    assert run[VAL_ACCURACY]["cross_entropy"].steps.tolist() == [0, 1]
    assert len(run[ACCURACY]["cross_entropy"]) == 2


def test_a_loss_without_a_backward_or_in_a_step_that_is_not_read_deep(tmp_path, model, optimizer):
    with watching(tmp_path / "run", model, optimizer) as watch:
        x, y = torch.randn(4, 5), torch.zeros(4).long()
        train(model, optimizer, x, y)
        stepper, step = watch._loop.stepper, watch._loop.stepper.open
        assert stepper.listens_to(LossComputed, step.forward_depth)
        functional.l1_loss(model(x), x)  # for the log alone: the watch ends before any backward
        step.next_depth = step.forward_depth = Depth.LIGHT
        assert not stepper.listens_to(LossComputed, step.forward_depth)
        train(model, optimizer, x, y)
    run = Run.load(tmp_path / "run")
    assert "l1_loss" not in run[OUTPUT_SIZE]
    assert run[OUTPUT_SIZE]["cross_entropy"].steps.tolist() == [0]


@pytest.mark.parametrize("validates", [False, True])
def test_eval_mode_in_light_steps(tmp_path, model, optimizer, monkeypatch, validates):
    x, y = torch.randn(4, 5), torch.zeros(4).long()
    with watching(tmp_path / "run", model, optimizer) as watch:
        depths = {True: Depth.FULL, False: Depth.LIGHT}
        monkeypatch.setattr(
            watch._loop.stepper._budget, "depth", lambda step: depths[step % 4 == 0]
        )
        for step in range(9):
            model.train(validates)
            train(model, optimizer, x, y)
            if validates and step == 5:
                model.eval()
                functional.cross_entropy(model(x), y)
                functional.cross_entropy(model(x), y)
    run = Run.load(tmp_path / "run")
    assert run[ACCURACY]["cross_entropy"].steps.tolist() == [0, 4, 8]
    if validates:
        assert run[VAL_ACCURACY]["cross_entropy"].steps.tolist() == [5]
    else:
        assert VAL_ACCURACY not in run


def test_many_calls_in_a_step(tmp_path, logits):
    def many(out):
        return sum(functional.cross_entropy(out[i % 40], LABELS[i % 40]) for i in range(100))

    run = record_calls(tmp_path / "run", logits, many, steps=2)
    assert run.meta.notes == ()
    assert len(run[ACCURACY]["cross_entropy"]) == 2
