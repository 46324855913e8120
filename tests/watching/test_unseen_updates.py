"""Weights that no torch optimizer updates: steps, losses, gradients and updates are recorded."""

import traceback

import pytest
import torch
from torch import nn
from torch.nn import functional

import holter
from holter.record.signals import (
    BACKWARD_CALLS,
    GRAD_CARRIED_FRACTION,
    GRAD_TOTAL_NORM,
    INPUT_MEAN,
    LOSS,
    LR,
    UPDATE_RATIO,
    VAL_LOSS,
    WEIGHT_TOTAL_NORM,
)
from watching.collectors.trainings import values

RATE = 0.1


def in_no_grad(parameters):
    with torch.no_grad():
        for parameter in parameters:
            parameter.sub_(RATE * parameter.grad)
            parameter.grad = None


def one_block_each(parameters):
    for parameter in parameters:
        with torch.no_grad():
            parameter.sub_(RATE * parameter.grad)
            parameter.grad.zero_()


def through_data(parameters):
    for parameter in parameters:
        parameter.data.add_(parameter.grad.data, alpha=-RATE)
        parameter.grad.zero_()


def through_data_throughout(parameters):
    for parameter in parameters:
        parameter.data -= RATE * parameter.grad
        parameter.grad.data.zero_()


def with_new_data(parameters):
    for parameter in parameters:
        parameter.data = parameter.data - RATE * parameter.grad
        parameter.grad = None


def all_at_once(parameters):
    with torch.no_grad():
        torch._foreach_add_(parameters, [p.grad for p in parameters], alpha=-RATE)
        torch._foreach_zero_([p.grad for p in parameters])


SPELLINGS = [
    in_no_grad,
    one_block_each,
    through_data,
    through_data_throughout,
    with_new_data,
    all_at_once,
]


class Truth:
    """A model that is trained by hand, and what its script knows of each step."""

    def __init__(self, update, *, micro_batches=1):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        self.parameters = list(self.model.parameters())
        self._update, self._micro_batches = update, micro_batches
        self.losses, self.norms, self.sizes, self.inputs = [], [], [], []

    def step(self):
        losses = []
        for _ in range(self._micro_batches):
            x = torch.randn(16, 3)
            loss = functional.mse_loss(self.model(x), x.sum(1, keepdim=True))
            (loss / self._micro_batches).backward()
            losses.append(loss.item() / self._micro_batches)
        self.losses.append(sum(losses))
        self.inputs.append(x.mean().item())
        gradients = [parameter.grad for parameter in self.parameters]
        self.norms.append(torch.nn.utils.get_total_norm(gradients).item())
        self._update(self.parameters)
        weights = [parameter.detach() for parameter in self.parameters]
        self.sizes.append(torch.nn.utils.get_total_norm(weights).item())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run"


def watch(model, path, **options):
    return holter.watch(model, [], path, quiet=True, **options)


@pytest.mark.parametrize("update", SPELLINGS, ids=lambda update: update.__name__)
def test_every_step_is_recorded(path, update):
    truth = Truth(update)
    with watch(truth.model, path, budget=None) as w:
        for _ in range(12):
            truth.step()
    assert w.steps == 12
    run = holter.Run.load(path)
    assert values(run, LOSS) == pytest.approx(truth.losses)
    assert values(run, GRAD_TOTAL_NORM) == pytest.approx(truth.norms, rel=1e-5)
    assert values(run, WEIGHT_TOTAL_NORM) == pytest.approx(truth.sizes, rel=1e-5)
    assert all(ratio > 0 for ratio in values(run, UPDATE_RATIO, "0.weight"))
    assert values(run, BACKWARD_CALLS) == [1] * 12
    # What a forward pass is called with belongs to the step that it begins.
    assert values(run, INPUT_MEAN, *run[INPUT_MEAN]) == pytest.approx(truth.inputs, abs=1e-6)
    assert LR not in run
    assert any("without a torch optimizer" in note for note in run.meta.notes)
    reasons = [verdict.because for verdict in holter.check(run).not_examined]
    assert any("The script updates the weights itself" in reason for reason in reasons)


@pytest.mark.parametrize("update", SPELLINGS, ids=lambda update: update.__name__)
def test_watching_changes_nothing(path, update):
    plain, watched = Truth(update), Truth(update)
    torch.manual_seed(1)
    for _ in range(5):
        plain.step()
    torch.manual_seed(1)
    with watch(watched.model, path):
        for _ in range(5):
            watched.step()
    assert plain.losses == watched.losses
    for one, other in zip(plain.parameters, watched.parameters, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("update", SPELLINGS, ids=lambda update: update.__name__)
def test_accumulation_is_one_step(path, update):
    truth = Truth(update, micro_batches=3)
    with watch(truth.model, path, budget=None) as w:
        for _ in range(6):
            truth.step()
    assert w.steps == 6
    run = holter.Run.load(path)
    assert values(run, LOSS) == pytest.approx(truth.losses)
    assert values(run, GRAD_TOTAL_NORM) == pytest.approx(truth.norms, rel=1e-5)
    assert values(run, BACKWARD_CALLS) == [3] * 6


@pytest.mark.parametrize("update", SPELLINGS, ids=lambda update: update.__name__)
def test_steps_are_counted_where_few_are_read(path, update, monkeypatch):
    monkeypatch.setattr("holter.watching.budget.ALLOWANCE", 0.0)
    truth = Truth(update)
    with watch(truth.model, path, budget=1e-4) as w:
        for step in range(300):
            truth.step()
            if step % 50 == 49:
                truth.model.eval()
                with torch.no_grad():
                    x = torch.randn(16, 3)
                    functional.mse_loss(truth.model(x), x.sum(1, keepdim=True))
                truth.model.train()
    assert w.steps == 300
    run = holter.Run.load(path)
    losses = run[LOSS][""]
    expected = [truth.losses[step] for step in losses.steps]
    assert losses.values.tolist() == pytest.approx(expected)
    assert run[VAL_LOSS]["mse_loss"].steps.tolist() == [49, 99, 149, 199, 249, 299]


def test_gradients_that_are_not_cleared(path):
    def forget(parameters):
        with torch.no_grad():
            for parameter in parameters:
                parameter.sub_(0.001 * parameter.grad)

    truth = Truth(forget)
    with watch(truth.model, path, budget=None):
        for _ in range(5):
            truth.step()
    assert values(holter.Run.load(path), GRAD_CARRIED_FRACTION) == [1] * 4


def test_backward_without_an_update_is_no_step(path):
    truth = Truth(lambda parameters: None)
    with watch(truth.model, path) as w:
        for _ in range(5):
            truth.step()
            truth.model.zero_grad()
    assert w.steps == 0
    assert w.backwards == 5


def test_two_models_in_turns(path):
    torch.manual_seed(0)
    generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    losses = {"generator": [], "critic": []}
    with watch({"generator": generator, "critic": critic}, path) as w:
        for _ in range(6):
            for name, model in (("critic", critic), ("generator", generator)):
                made = generator(torch.randn(8, 2))
                answer = critic(made.detach() if model is critic else made)
                loss = answer.square().mean() if model is critic else -answer.mean()
                loss.backward()
                losses[name].append(loss.item())
                in_no_grad(list(model.parameters()))
                critic.zero_grad()
    assert w.steps == 12
    run = holter.Run.load(path)
    for name, truth in losses.items():
        assert values(run, LOSS, name) == pytest.approx(truth)
        assert len(values(run, UPDATE_RATIO, f"{name}.weight")) == 6
    assert run[LOSS]["critic"].steps.tolist() == list(range(0, 12, 2))


def test_a_step_with_nonfinite_gradients_can_be_skipped(path, capsys):
    truth = Truth(in_no_grad)
    truth.model[0].weight.register_hook(lambda gradient: gradient * float("nan"))
    before = truth.model[0].weight.detach().clone()
    with watch(truth.model, path, on_nonfinite="skip") as w:
        for _ in range(3):
            truth.step()
    assert w.steps == 3
    assert torch.equal(truth.model[0].weight, before)
    assert capsys.readouterr().err.count("step skipped") == 3


def test_nonfinite_gradients_can_end_the_training_before_weights_change(path):
    truth = Truth(in_no_grad)
    truth.model[0].weight.register_hook(lambda gradient: gradient * float("nan"))
    before = truth.model[0].weight.detach().clone()
    with (
        pytest.raises(FloatingPointError, match="step 0"),
        watch(truth.model, path, on_nonfinite="raise"),
    ):
        truth.step()
    assert torch.equal(truth.model[0].weight, before)


class GradTruth(Truth):
    """The same by `torch.autograd.grad`, which leaves no gradient behind."""

    def __init__(self):
        super().__init__(None)

    def step(self):
        x = torch.randn(16, 3)
        loss = functional.mse_loss(self.model(x), x.sum(1, keepdim=True))
        gradients = torch.autograd.grad(loss, self.parameters)
        assert all(parameter.grad is None for parameter in self.parameters)
        self.losses.append(loss.item())
        self.inputs.append(x.mean().item())
        self.norms.append(torch.nn.utils.get_total_norm(gradients).item())
        with torch.no_grad():
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                parameter.sub_(RATE * gradient)
        weights = [parameter.detach() for parameter in self.parameters]
        self.sizes.append(torch.nn.utils.get_total_norm(weights).item())


def test_gradients_by_grad_are_recorded(path):
    truth = GradTruth()
    with watch(truth.model, path, budget=None) as w:
        for _ in range(12):
            truth.step()
    assert w.steps == 12
    run = holter.Run.load(path)
    assert values(run, LOSS) == pytest.approx(truth.losses)
    assert values(run, GRAD_TOTAL_NORM) == pytest.approx(truth.norms, rel=1e-5)
    assert values(run, WEIGHT_TOTAL_NORM) == pytest.approx(truth.sizes, rel=1e-5)
    assert values(run, INPUT_MEAN, *run[INPUT_MEAN]) == pytest.approx(truth.inputs, abs=1e-6)


def test_watching_grad_changes_nothing(path):
    plain, watched = GradTruth(), GradTruth()
    torch.manual_seed(1)
    for _ in range(5):
        plain.step()
    torch.manual_seed(1)
    with watch(watched.model, path):
        for _ in range(5):
            watched.step()
    assert plain.losses == watched.losses
    assert all(map(torch.equal, plain.parameters, watched.parameters))


def test_grad_beside_backward_or_in_a_larger_graph_is_no_step(path):
    truth = Truth(in_no_grad)
    with watch(truth.model, path, budget=None) as w:
        for _ in range(4):
            x = torch.randn(16, 3, requires_grad=True)
            (slope,) = torch.autograd.grad(truth.model(x).sum(), x, create_graph=True)
            assert slope.requires_grad
            truth.step()
            x = torch.randn(16, 3, requires_grad=True)
            torch.autograd.grad(truth.model(x).sum(), [x])
    assert w.steps == 4
    run = holter.Run.load(path)
    assert values(run, LOSS) == pytest.approx(truth.losses)
    assert values(run, BACKWARD_CALLS) == [1] * 4


def test_grad_beside_an_optimizer_is_no_step(path):
    truth = Truth(None)
    optimizer = torch.optim.SGD(truth.parameters, lr=RATE)
    with holter.watch(truth.model, optimizer, path, quiet=True, budget=None) as w:
        for _ in range(4):
            x = torch.randn(16, 3)
            loss = functional.mse_loss(truth.model(x), x.sum(1, keepdim=True))
            gradients = torch.autograd.grad(loss, truth.parameters, retain_graph=True)
            assert len(gradients) == len(truth.parameters)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert w.steps == 4
    assert values(holter.Run.load(path), BACKWARD_CALLS) == [1] * 4


def test_grad_beside_an_optimizer_that_has_not_stepped_yet_is_no_step(path):
    """As under `holter run`, where an optimizer is watched from its first step on."""
    truth = Truth(None)
    with watch(truth.model, path, budget=None) as w:
        optimizer = torch.optim.SGD(truth.parameters, lr=RATE)
        gradients = torch.autograd.grad(truth.model(torch.randn(16, 3)).sum(), truth.parameters)
        assert len(gradients) == len(truth.parameters)
        assert w.backwards == 0
        assert optimizer.param_groups


def test_what_a_script_calls_is_tapped_once_however_often_models_are_followed(tmp_path):
    depths = []

    class Deep(nn.Linear):
        def forward(self, x):
            depths.append(len(traceback.extract_stack()))
            return super().forward(x)

    model = Deep(2, 1)
    with holter.watch([], [], tmp_path / "run", quiet=True) as watch:
        for _ in range(5):
            watch.follow([model], [list(model.named_parameters())], by="The script")
            model(torch.ones(1, 2))
            watch.release()
    assert len(set(depths)) == 1
