"""What evaluation passes count, against scikit-learn and plain formulas over all samples."""

import numpy as np
import pytest
import torch
from sklearn import metrics as oracle
from torch import nn
from torch.nn import functional

from holter import Run
from holter.diagnosis.facts.metrics import (
    auroc,
    average_precision,
    calibration,
    classification,
    regression,
)
from holter.record.events import PassMeasured
from holter.record.signals import VAL_BALANCED_ACCURACY, VAL_CALIBRATION_ERROR, VAL_R2
from holter.watching.collectors import evaluated_passes, loss_calls
from watching.collectors.trainings import watching

NONE = torch.zeros(4, dtype=torch.long)


def measured(tmp_path, evaluate, *, passes=1):
    """The run of a training that calls `evaluate` after a step, and its passes."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(passes):
            model(torch.ones(3, 2)).mean().backward()
            optimizer.step()
            with torch.no_grad():
                evaluate()
    run = Run.load(tmp_path / "run")
    assert not run.meta.notes
    return run, [event.what for event in run.events_of(PassMeasured)]


def in_batches(function, outputs, targets, size, **options):
    for start in range(0, len(outputs), size):
        rows = slice(start, start + size)
        function(outputs[rows].clone(), targets[rows], **options)


@pytest.fixture(params=[7, 1000], ids=["small batches", "one batch"])
def size(request):
    return request.param


def test_classes(tmp_path, size):
    torch.manual_seed(0)
    target = torch.randint(0, 5, (300,))
    logits = torch.randn(300, 6) + 2 * functional.one_hot(target, 6)
    target[:30] = -100
    run, (passed,) = measured(
        tmp_path, lambda: in_batches(functional.cross_entropy, logits, target, size)
    )
    truth, guess = target[30:].numpy(), logits[30:].argmax(1).numpy()
    found = classification(passed)
    assert passed.owner == "cross_entropy"
    assert (passed.targets, passed.read) == (270, 1.0)
    assert found.accuracy == pytest.approx(oracle.accuracy_score(truth, guess))
    assert found.balanced == pytest.approx(_balanced(truth, guess), rel=1e-5)
    assert found.macro_f1 == pytest.approx(oracle.f1_score(truth, guess, average="macro"))
    assert found.weighted_f1 == pytest.approx(oracle.f1_score(truth, guess, average="weighted"))
    assert found.majority == pytest.approx(np.bincount(truth).max() / len(truth))
    matrix = np.zeros((6, 6), int)
    for one in found.each:
        matrix[one.label, one.label] = one.right
    for row, column, times in passed.classes.confusions:
        matrix[row, column] = times
    assert (matrix == oracle.confusion_matrix(truth, guess, labels=range(6))).all()
    loss = functional.cross_entropy(logits[30:], target[30:], reduction="none")
    for one in found.each:
        if one.support:
            assert one.loss == pytest.approx(loss[target[30:] == one.label].mean().item(), rel=1e-4)
    error = calibration(passed.classes.reliability)
    assert error.error == pytest.approx(_ece(logits[30:], target[30:]), rel=1e-4)
    assert run[VAL_CALIBRATION_ERROR]["cross_entropy"].values[0] == pytest.approx(error.error)
    assert run[VAL_BALANCED_ACCURACY]["cross_entropy"].values[0] == pytest.approx(found.balanced)


def _balanced(truth, guess):
    return np.mean([(guess[truth == label] == label).mean() for label in np.unique(truth)])


def _ece(logits, target):
    confidence, guess = functional.softmax(logits, 1).max(1)
    bins = (confidence * 15).long().clamp(max=14)
    gaps = [
        (confidence[bins == n] - (guess == target)[bins == n].float()).sum().abs().item()
        for n in range(15)
    ]
    return sum(gaps) / len(target)


def test_yes_or_no(tmp_path, size):
    torch.manual_seed(0)
    target = (torch.rand(400) < 0.2).float()
    logits = torch.randn(400) * 2 + target * 2 - 1
    run, (passed,) = measured(
        tmp_path,
        lambda: in_batches(functional.binary_cross_entropy_with_logits, logits, target, size),
    )
    truth, guess = target.numpy(), (logits > 0).numpy()
    found = classification(passed)
    assert found.accuracy == pytest.approx(oracle.accuracy_score(truth, guess))
    assert found.balanced == pytest.approx(oracle.balanced_accuracy_score(truth, guess))
    assert found.each[1].f1 == pytest.approx(oracle.f1_score(truth, guess))
    assert auroc(passed.scores) == pytest.approx(oracle.roc_auc_score(truth, logits), abs=5e-3)
    precision = oracle.average_precision_score(truth, logits)
    assert average_precision(passed.scores) == pytest.approx(precision, abs=0.02)
    owner = "binary_cross_entropy_with_logits"
    assert run[VAL_BALANCED_ACCURACY][owner].values[0] == pytest.approx(found.balanced)


def test_probabilities_are_scores_like_their_logits(tmp_path):
    target, logits = torch.tensor([0.0, 1.0, 1.0, 0.0]), torch.tensor([-3.1, 2.2, -0.4, 0.6])
    _, (passed,) = measured(
        tmp_path, lambda: functional.binary_cross_entropy(logits.sigmoid(), target)
    )
    assert auroc(passed.scores) == 0.75
    assert passed.scores.each == ((0, 2, 2, 1),)


def test_several_units(tmp_path):
    torch.manual_seed(0)
    target = (torch.rand(60, 3, 2, 2) < torch.tensor([0.1, 0.5, 0.9])[:, None, None]).float()
    logits = torch.randn(60, 3, 2, 2) + target
    _, (passed,) = measured(
        tmp_path, lambda: functional.binary_cross_entropy_with_logits(logits, target)
    )
    yes, guess = target > 0.5, logits > 0
    assert [unit.yes for unit in passed.scores.each] == yes.sum((0, 2, 3)).tolist()
    assert [unit.predicted for unit in passed.scores.each] == guess.sum((0, 2, 3)).tolist()
    assert [unit.right for unit in passed.scores.each] == (yes & guess).sum((0, 2, 3)).tolist()


def test_shades_of_grey_are_no_answers(tmp_path):
    _, passes = measured(
        tmp_path, lambda: functional.binary_cross_entropy(torch.rand(8, 4), torch.rand(8, 4))
    )
    assert not passes


def test_numbers(tmp_path, size):
    torch.manual_seed(0)
    target = torch.randn(500, 2) * torch.tensor([1.0, 10.0]) + 100
    output = target + torch.randn(500, 2) * 0.7 - 0.2
    run, (passed,) = measured(
        tmp_path, lambda: in_batches(functional.mse_loss, output, target, size)
    )
    found = regression(passed.numbers)
    truth, guess = target.numpy(), output.numpy()
    r2 = oracle.r2_score(truth, guess, multioutput="variance_weighted")
    assert found.r2 == pytest.approx(r2, rel=1e-4)
    assert found.rmse == pytest.approx(np.sqrt(((guess - truth) ** 2).mean()), rel=1e-4)
    assert found.mae == pytest.approx(np.abs(guess - truth).mean(), rel=1e-4)
    assert found.bias == pytest.approx((guess - truth).mean(), rel=1e-3)
    wanted = np.quantile(guess - truth, (0.05, 0.95))
    assert found.quantiles[0] == pytest.approx(wanted[0], rel=0.12)
    assert found.quantiles[-1] == pytest.approx(wanted[1], rel=0.12)
    assert run[VAL_R2]["mse_loss"].values[0] == pytest.approx(r2, rel=1e-4)


@pytest.mark.parametrize("flat", [False, True], ids=["N,C,T", "view(-1)"])
def test_tokens_by_position_and_frequency(tmp_path, flat):
    torch.manual_seed(0)
    vocabulary, rows, length = 1200, 8, 100
    target = (torch.rand(rows, length) ** 4 * vocabulary).long()
    logits = torch.randn(rows, length, vocabulary)
    logits[:, 10:].scatter_(2, target[:, 10:, None], 9.0)  # the first ten are hard
    target[:, 90:] = -100

    def evaluate():
        if flat:
            functional.cross_entropy(logits.view(-1, vocabulary), target.view(-1))
        else:
            functional.cross_entropy(logits.transpose(1, 2), target)

    _, (passed,) = measured(tmp_path, evaluate)
    counts = passed.classes
    assert passed.targets == rows * 90
    assert counts.recall == pytest.approx(
        _balanced(target[:, :90].flatten().numpy(), logits[:, :90].argmax(2).flatten().numpy())
    )
    assert (counts.positions[0].first, counts.positions[0].last) == (0, 1)
    assert counts.positions[-1].last == 89
    loss = functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    assert counts.positions[0].loss == pytest.approx(loss[:, :2].mean().item(), rel=1e-3)
    assert counts.positions[-1].loss == pytest.approx(loss[:, 88:90].mean().item(), rel=1e-3)
    assert counts.positions[0].loss > 5
    assert counts.positions[10].loss < 1
    groups = counts.frequencies
    assert sum(group.targets for group in groups) == passed.targets
    assert groups[0].classes > groups[-1].classes
    assert len(counts.each) == 100


def test_large_predictions_are_thinned(tmp_path, monkeypatch):
    monkeypatch.setattr(loss_calls, "LIMIT", 1000)
    monkeypatch.setattr(evaluated_passes, "_SMALL", 1)
    target = torch.arange(1000) % 4
    logits = 5.0 * functional.one_hot(target, 4)
    _, (passed,) = measured(tmp_path, lambda: functional.cross_entropy(logits, target))
    assert 0.1 < passed.read < 0.4
    assert classification(passed).accuracy == 1


def test_batches_of_many_lengths(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluated_passes, "_MOST_WAITING", 200)

    def evaluate():
        for length in range(2, 30):
            functional.cross_entropy(torch.zeros(2, 3, length), NONE[:1].expand(2, length))

    _, (passed,) = measured(tmp_path, evaluate)
    assert passed.targets == 2 * sum(range(2, 30))
    assert passed.classes.positions[-1].last == 28


def test_a_pass_in_inference_mode_after_one_without(tmp_path):
    logits, target = torch.eye(3).repeat(5, 1), torch.arange(3).repeat(5)

    def evaluate():
        for context in (torch.no_grad, torch.inference_mode, torch.no_grad):
            with context():
                functional.cross_entropy(logits * 1.0, target)

    _, passes = measured(tmp_path, evaluate, passes=2)
    assert [passed.targets for passed in passes] == [45, 45]


def test_of_many_passes_a_geometric_series_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluated_passes, "_ALL", 4)
    logits, target = torch.eye(3), torch.arange(3)
    run, passes = measured(tmp_path, lambda: functional.cross_entropy(logits, target), passes=40)
    steps = [event.step for event in run.events_of(PassMeasured)]
    assert steps[:5] == [0, 1, 2, 3, 4]
    assert 10 < len(passes) < 20


def test_passes_that_cost_too_much_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluated_passes, "_ALLOWANCE", 0.0)
    monkeypatch.setattr(evaluated_passes, "_SHARE", 0.0)
    logits, target = torch.eye(3), torch.arange(3)
    _, passes = measured(tmp_path, lambda: functional.cross_entropy(logits, target), passes=5)
    assert len(passes) <= 1


def test_two_heads_of_one_loss_function_are_counted_apart(tmp_path):
    def evaluate():
        for outputs, target in ((torch.eye(3), torch.arange(3)), (torch.eye(4), NONE)):
            functional.cross_entropy(outputs, target)

    run, passes = measured(tmp_path, evaluate)
    assert [classification(passed).accuracy for passed in passes] == [1.0, 0.25]
    assert VAL_BALANCED_ACCURACY not in run


def test_scores_that_are_not_finite_void_no_counts(tmp_path):
    logits, target = torch.eye(3).repeat(4, 1), torch.arange(3).repeat(4)
    logits[0] = torch.nan
    _, (passed,) = measured(tmp_path, lambda: functional.cross_entropy(logits, target))
    assert passed.targets == 12
    assert calibration(passed.classes.reliability) is None


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_outputs_of_the_training_are_told_from_those_of_an_evaluation(tmp_path, retain, again):
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, labels = torch.randn(30, 2), torch.arange(30) % 3
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            model.train()
            outputs = model(inputs)
            functional.cross_entropy(outputs[:10], labels[:10]).backward(retain_graph=retain)
            optimizer.step()
            optimizer.zero_grad()
            model.eval()
            if again:  # without no_grad
                outputs = model(inputs)
            functional.cross_entropy(outputs[10:], labels[10:])
    passes = Run.load(tmp_path / "run").events_of(PassMeasured)
    assert [each.what.from_training for each in passes] == [not again] * 3
    assert all(each.what.targets == 20 for each in passes)
