"""What lies between the outputs of a model and the loss, by the graph."""

import gc

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional

from holter import Run
from holter.record.signals import (
    GRAPH_DEPTH,
    GRAPH_LEAVES,
    GRAPH_LOOSE_LEAVES,
    GRAPH_OPERATIONS,
    LOSS_BATCH_SOFTMAX,
    LOSS_CONSTANT_PART,
    LOSS_DIVISOR,
    LOSS_LARGEST_OUTPUT,
    LOSS_LOG_ARGUMENT,
    LOSS_PAIRED_SPREAD,
    LOSS_RATIO_CANCELLED,
    LOSS_ROOT_ARGUMENT,
    LOSS_TERM_GRADIENT,
    MODEL_ELEMENTS,
)
from watching.collectors.trainings import values, watching

ROWS, CLASSES = 6, 4
LABELS = torch.tensor([0, 3, 1, 1, 2, 0])


def recorded(path, loss_of, model=None, steps=3):
    torch.manual_seed(0)
    model = nn.Linear(3, CLASSES) if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with watching(path, model, optimizer):
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(model(torch.randn(ROWS, 3))).backward()
            optimizer.step()
    return Run.load(path)


def picked(logs):
    return -logs[torch.arange(ROWS), LABELS].mean()


SOFTMAXES = {
    "classes": (1, lambda out: functional.cross_entropy(out, LABELS)),
    "classes by hand": (1, lambda out: picked(functional.log_softmax(out, 1))),
    "samples": (0, lambda out: picked(functional.log_softmax(out, 0))),
    "samples, with a floor": (0, lambda out: picked((out.softmax(0) + 1e-8).log())),
    "samples, then cross-entropy": (
        0,
        lambda out: functional.cross_entropy(out.softmax(0), LABELS),
    ),
    "samples, at a temperature": (0, lambda out: picked(functional.log_softmax(out / 2, 0))),
    "items of a list": (
        1,
        lambda out: -(torch.full((ROWS, CLASSES), 1 / ROWS) * out.log_softmax(0)).sum(0).mean(),
    ),
}


@pytest.mark.parametrize(("axis", "loss_of"), SOFTMAXES.values(), ids=SOFTMAXES.keys())
def test_the_axis_of_a_softmax(tmp_path, axis, loss_of):
    run = recorded(tmp_path / "run", loss_of)
    assert values(run, LOSS_BATCH_SOFTMAX) == [axis == 0] * 3


def test_a_softmax_inside_the_model_counts_if_it_is_the_last_operation(tmp_path):
    inside = nn.Sequential(nn.Linear(3, 8), nn.Softmax(0), nn.Linear(8, CLASSES))
    run = recorded(tmp_path / "a", lambda out: functional.cross_entropy(out, LABELS), inside)
    assert values(run, LOSS_BATCH_SOFTMAX) == [0] * 3  # that of the loss
    last = nn.Sequential(nn.Linear(3, CLASSES), nn.LogSoftmax(0))
    run = recorded(tmp_path / "b", lambda out: functional.nll_loss(out, LABELS), last)
    assert values(run, LOSS_BATCH_SOFTMAX) == [1] * 3


def dice(probabilities, target):
    overlap = 2 * (probabilities * target).sum((-1, -2)) + 1e-6
    return 1 - (overlap / (probabilities.sum((-1, -2)) + target.sum((-1, -2)) + 1e-6)).mean()


@pytest.mark.parametrize("axis", [0, 1])
def test_the_axis_of_a_softmax_over_images_in_one_term_of_the_loss(tmp_path, axis):
    truth = (torch.rand(ROWS, CLASSES, 2, 2) > 0.5).float()

    def loss_of(out):
        images = out[:, :, None, None].expand(-1, -1, 2, 2)
        return functional.cross_entropy(out, LABELS) + dice(images.softmax(axis), truth)

    assert values(recorded(tmp_path / "run", loss_of), LOSS_BATCH_SOFTMAX) == [axis == 0] * 3


def test_attention_and_pairs_are_no_softmax_over_samples(tmp_path):
    def pooled(out):
        return (out[:, :2].softmax(0) * out[:, 2:]).sum(0).square().mean()

    def contrasted(out):
        return -functional.log_softmax(out @ out.T, 0).diagonal().mean()

    assert LOSS_BATCH_SOFTMAX not in recorded(tmp_path / "a", pooled)
    assert LOSS_BATCH_SOFTMAX not in recorded(tmp_path / "b", contrasted)


def test_the_smallest_argument_of_each_operation(tmp_path):
    small = torch.full((ROWS, CLASSES), 2.0)
    small[1, 2] = 0.25

    def loss_of(out):
        zero = 0 * out
        return (zero + small).log().sum() + (zero + small).sqrt().sum() + (1 / (zero + small)).sum()

    run = recorded(tmp_path / "a", lambda out: loss_of(out) / -3.0)
    assert values(run, LOSS_LOG_ARGUMENT) == [0.25] * 3
    assert values(run, LOSS_ROOT_ARGUMENT) == pytest.approx([0.25] * 3)
    assert values(run, LOSS_DIVISOR) == [0.25] * 3
    run = recorded(tmp_path / "b", lambda out: ((0 * out + small) ** 0.5).sum() / -3)
    assert values(run, LOSS_ROOT_ARGUMENT) == [0.25] * 3
    assert values(run, LOSS_DIVISOR) == [3.0] * 3


def test_operations_inside_the_model_are_not_read(tmp_path):
    class Root(nn.Module):
        def forward(self, x):
            return (x.square() + 1e-3).sqrt()

    model = nn.Sequential(nn.Linear(3, CLASSES), Root())
    run = recorded(tmp_path / "run", lambda out: out.mean(), model)
    assert LOSS_ROOT_ARGUMENT not in run


def test_leaves_that_are_no_parameters(tmp_path):
    run = recorded(tmp_path / "a", lambda out: out.mean())
    assert values(run, GRAPH_LOOSE_LEAVES) == [0] * 3
    run = recorded(tmp_path / "b", lambda out: out.detach().requires_grad_().mean())
    assert values(run, GRAPH_LOOSE_LEAVES) == [1] * 3
    run = recorded(tmp_path / "c", lambda out: torch.tensor(out.mean().item(), requires_grad=True))
    assert values(run, GRAPH_LOOSE_LEAVES) == [1] * 3


def test_nothing_outlives_the_graph(tmp_path):
    model = nn.Linear(3, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            out = model(torch.randn(ROWS, 3))
            storage = StorageWeakRef(out.untyped_storage())
            loss = (out - 1).square().mean()
            loss.backward()
            optimizer.step()
            assert not storage.expired()
            del out, loss
            gc.collect()
            assert storage.expired()


def test_the_share_of_each_term_in_the_gradient(tmp_path):
    numbers = torch.linspace(-1, 1, ROWS)

    def first(out):
        return (out[:, 0] - numbers).square().mean()

    def second(out):
        return 0.01 * out[:, 1:].exp().mean()

    torch.manual_seed(0)
    model = nn.Linear(3, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    expected = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            out = model(torch.randn(ROWS, 3))
            made = out.detach().requires_grad_()
            norms = [torch.autograd.grad(term(made), made)[0].norm() for term in (first, second)]
            expected.append(float(norms[0] / sum(norms)))
            penalty = sum(parameter.square().sum() for parameter in model.parameters())
            (first(out) + second(out) + 0.1 * penalty).backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert set(run[LOSS_TERM_GRADIENT]) == {"mse_loss", "exp"}
    assert values(run, LOSS_TERM_GRADIENT, "mse_loss") == pytest.approx(expected, rel=1e-5)


def test_a_loss_of_one_term_has_no_shares(tmp_path):
    run = recorded(tmp_path / "run", lambda out: functional.cross_entropy(out, LABELS))
    assert LOSS_TERM_GRADIENT not in run


def test_the_graph_is_counted(tmp_path):
    """Operations, those that depend on each other, and tensors at which it ends."""

    def loss_of(out):
        scale = out.sum()
        for _ in range(5):  # each needs the last
            scale = scale.sin()
        return torch.stack([scale * number for number in range(8)]).sum()

    run = recorded(tmp_path / "run", loss_of)
    # addmm and the transposed weight, a sum, 5 sines, 8 products, a stack, a sum
    sizes = [values(run, s)[0] for s in (GRAPH_OPERATIONS, GRAPH_DEPTH, GRAPH_LEAVES)]
    assert sizes == [2 + 1 + 5 + 8 + 2, 2 + 1 + 5 + 1 + 2, 2]


TARGETS = torch.arange(ROWS) * 1.0
PAIRED = {
    "squares": (lambda out: ((out - TARGETS) ** 2).mean(), True),
    "beside a loss function": (
        lambda out: (
            (out.sigmoid() - TARGETS).abs().mean()
            + functional.cross_entropy(torch.cat((out, -out), 1), LABELS % 2)
        ),
        True,
    ),
    "a column": (lambda out: ((TARGETS - out[:, :1]) ** 2 * (-out[:, :1]).exp()).mean(), True),
    "log cosh": (lambda out: torch.log(torch.cosh(out - TARGETS)).mean(), True),
    "bounded": (lambda out: (out - TARGETS).clamp(-1, 1).square().mean(), True),
    "squeezed": (lambda out: ((out.squeeze(1) - TARGETS) ** 2).mean(), False),
    "unsqueezed": (lambda out: ((out - TARGETS.unsqueeze(1)) ** 2).mean(), False),
    "pairs on purpose": (lambda out: ((out[:, 0, None] - TARGETS) ** 2).mean(), False),
    "differences of outputs": (lambda out: ((out - out.T) ** 2).mean(), False),
}


@pytest.mark.parametrize(("loss_of", "is_paired"), PAIRED.values(), ids=PAIRED.keys())
def test_differences_of_every_prediction_and_every_target(tmp_path, loss_of, is_paired):
    run = recorded(tmp_path / "run", loss_of, nn.Linear(3, 1))
    assert (LOSS_PAIRED_SPREAD in run) is is_paired
    if is_paired:
        assert 0 < values(run, LOSS_PAIRED_SPREAD)[0] < 1


def parted(out, part):
    return functional.cross_entropy(out, LABELS) + 0.5 * out.square().mean() + part


CONSTANT = {
    "none": (lambda out: parted(out, 0.1 * out.abs().sum()), 0.0),
    "a tensor": (lambda out: parted(out, torch.tensor(3.0)), 3.0),
    "detached": (lambda out: parted(out, 0 * out.detach().sum() + 2.0), 2.0),
    "first, and scaled": (lambda out: 2 * (torch.tensor(1.5) - out.square().mean()), 3.0),
    "below a sum": (lambda out: torch.tensor(1.5) + out.abs().mean() + out.exp().sum(), 1.5),
    "one of torch's functions": (
        lambda out: functional.mse_loss(out.detach(), out.detach() + 2) + out.logsumexp(1).sum(),
        None,
    ),
}


@pytest.mark.parametrize(("loss_of", "part"), CONSTANT.values(), ids=CONSTANT.keys())
def test_the_part_of_a_loss_without_a_gradient(tmp_path, loss_of, part):
    run = recorded(tmp_path / "run", loss_of)
    if part is None:  # what is added to it cannot be computed again
        assert LOSS_CONSTANT_PART not in run
    else:
        assert values(run, LOSS_CONSTANT_PART) == pytest.approx([part] * 3, abs=1e-5)


def test_the_size_of_what_modules_return(tmp_path):
    model = nn.Sequential(nn.Linear(3, 8), nn.Linear(8, CLASSES))
    run = recorded(tmp_path / "run", lambda out: out.mean(), model)
    assert values(run, MODEL_ELEMENTS) == [ROWS * CLASSES] * 3

    def twice(out):
        return (out + model(torch.randn(ROWS, 3))).mean()

    run = recorded(tmp_path / "twice", twice, model)
    assert values(run, MODEL_ELEMENTS) == [2 * ROWS * CLASSES] * 3


class Weighted(nn.Module):
    """A loss with a parameter."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, out):
        return self.scale * (out - TARGETS).square().mean()


def test_a_module_that_computes_a_loss_does_not_end_the_model(tmp_path):
    model, weighted = nn.Linear(3, 1), Weighted()
    optimizer = torch.optim.SGD([*model.parameters(), *weighted.parameters()], lr=0.001)
    with watching(tmp_path / "run", [model, weighted], optimizer):
        for _ in range(3):
            weighted(model(torch.randn(ROWS, 3))).backward()
            optimizer.step()
    assert LOSS_PAIRED_SPREAD in Run.load(tmp_path / "run")


TARGETS = torch.linspace(-1, 1, ROWS)
CHOICES = {
    "largest": ([1, 1, 1], lambda out: functional.mse_loss(out.max(dim=1).values, TARGETS)),
    "largest, by hand": ([1, 1, 1], lambda out: (out.amax(dim=1) - TARGETS).pow(2).mean()),
    "chosen": (
        [0, 0, 0],
        lambda out: functional.smooth_l1_loss(out.gather(1, LABELS[:, None])[:, 0], TARGETS),
    ),
    "chosen by index": (
        [0, 0, 0],
        lambda out: functional.mse_loss(out[torch.arange(ROWS), LABELS], TARGETS),
    ),
    "all": ([], lambda out: functional.mse_loss(out, TARGETS[:, None].expand(-1, CLASSES))),
    "largest of a class": ([], lambda out: functional.relu(out.max(dim=1).values).mean()),
}


@pytest.mark.parametrize(("expected", "loss_of"), CHOICES.values(), ids=CHOICES.keys())
def test_which_output_a_regression_compares(tmp_path, expected, loss_of):
    run = recorded(tmp_path / "run", loss_of)
    found = values(run, LOSS_LARGEST_OUTPUT) if LOSS_LARGEST_OUTPUT in run else []
    assert found == expected


RATIO = {
    "with itself": (lambda out: (out - 1 * out).exp().mean() + out.square().mean(), [1, 1, 1]),
    "of two outputs": (lambda out: (out[:, 0] - 2 * out[:, 0] - 1).exp().mean(), [0, 0, 0]),
    "with a constant": (lambda out: (out - out.detach()).exp().mean(), [0, 0, 0]),
    "none": (lambda out: out.exp().mean(), None),
}


@pytest.mark.parametrize(("loss_of", "cancelled"), RATIO.values(), ids=RATIO.keys())
def test_a_ratio_of_which_both_sides_have_a_gradient(tmp_path, loss_of, cancelled):
    run = recorded(tmp_path / "run", loss_of)
    assert (LOSS_RATIO_CANCELLED in run) is (cancelled is not None)
    if cancelled is not None:
        assert values(run, LOSS_RATIO_CANCELLED) == cancelled
