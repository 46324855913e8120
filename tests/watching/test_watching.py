"""Where steps begin and end, how a watch ends, and that it stays out of the way."""

import copy
import io
import math
import os
import pickle
import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import holter
from holter.record.events import ExceptionRaised, Resumed
from holter.record.reader import verify
from holter.record.signals import (
    BACKWARD_CALLS,
    CLOSURE_CALLS,
    GRAD_NORM,
    LOSS,
    LOSS_LOGGED,
    LR,
    MODE_TRAINING,
    VAL_LOSS,
    WEIGHT_NORM,
)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run"


def watch(model, optimizer, path, **options):
    return holter.watch(model, optimizer, path, quiet=True, **options)


def backward(model):
    loss = functional.cross_entropy(model(torch.randn(5, 3)), torch.randint(0, 2, (5,)))
    loss.backward()
    return loss.detach()


def step(model, optimizer):
    optimizer.zero_grad()
    loss = backward(model)
    optimizer.step()
    return loss


def values(path, signal, owner=""):
    return holter.Run.load(path)[signal][owner].values.tolist()


# Steps.


def test_a_plain_loop(model, optimizer, path):
    losses = []
    with watch(model, optimizer, path) as w:
        for number in range(5):
            losses.append(float(step(model, optimizer)))
            assert w.steps == number  # a step is open until the next backward
    assert w.steps == 5
    assert w.path == path
    assert values(path, LOSS) == pytest.approx(losses)
    assert holter.Run.load(path).meta.status == "finished"


@pytest.mark.parametrize("side", ["before", "after"])
def test_log_on_either_side_of_the_step(model, optimizer, path, side):
    with watch(model, optimizer, path) as w:
        for number in range(3):
            optimizer.zero_grad()
            backward(model)
            if side == "before":
                w.log(loss=float(number))
            optimizer.step()
            if side == "after":
                w.log(loss=float(number))
    assert values(path, LOSS_LOGGED) == [0, 1, 2]


def test_accumulation_is_one_step(model, optimizer, path):
    with watch(model, optimizer, path) as w:
        for number in range(6):
            backward(model)
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    assert w.steps == 2
    assert values(path, BACKWARD_CALLS) == [3, 3]


def test_evaluation_is_no_step(model, optimizer, path):
    with watch(model, optimizer, path) as w:
        for _ in range(3):
            step(model, optimizer)
            model.eval()
            with torch.no_grad():
                functional.cross_entropy(model(torch.randn(5, 3)), torch.zeros(5).long())
            model.train()
    assert w.steps == 3
    assert values(path, MODE_TRAINING, "Sequential") == [1, 1, 1]
    assert holter.Run.load(path)[VAL_LOSS]["cross_entropy"].steps.tolist() == [0, 1, 2]


def test_a_gan_alternates(path):
    maker, critic = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizers = {
        "maker": torch.optim.SGD(maker.parameters(), lr=0.1),
        "critic": torch.optim.SGD(critic.parameters(), lr=0.1),
    }
    with watch({"maker": maker, "critic": critic}, optimizers, path) as w:
        for _ in range(3):
            critic(maker(torch.randn(2, 3)).detach()).sum().backward()
            optimizers["critic"].step()
            critic(maker(torch.randn(2, 3))).sum().backward()
            optimizers["maker"].step()
    assert w.steps == 6
    run = holter.Run.load(path)
    assert run[LOSS]["critic"].steps.tolist() == [0, 2, 4]
    assert run[LOSS]["maker"].steps.tolist() == [1, 3, 5]
    assert run[WEIGHT_NORM]["maker.weight"].steps.tolist() == [1, 3, 5]


def test_two_optimizers_after_one_backward_share_a_step(model, path):
    optimizers = [torch.optim.SGD(model[0].parameters(), lr=0.1),
                  torch.optim.Adam(model[2].parameters(), lr=0.1)]  # fmt: skip
    with watch(model, optimizers, path) as w:
        for _ in range(3):
            backward(model)
            for optimizer in optimizers:
                optimizer.step()
    assert w.steps == 3
    run = holter.Run.load(path)
    assert all(len(each) == 3 for each in run[LOSS].values())
    assert len(run[LOSS]) == 2
    assert len(run[GRAD_NORM]["0.weight"]) == len(run[GRAD_NORM]["2.weight"]) == 3


@pytest.mark.parametrize("kind", [torch.optim.LBFGS, torch.optim.Adam])
def test_the_first_call_of_a_closure_is_the_step(model, path, kind):
    optimizer = kind(model.parameters(), lr=0.01)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(torch.ones(2, 3)), torch.zeros(2).long())
        loss.backward()
        calls[-1].append((loss.item(), model[0].weight.grad.norm().item()))
        return loss

    with watch(model, optimizer, path) as w:
        for _ in range(3):
            calls.append([])
            optimizer.step(closure)
    assert w.steps == 3
    first_losses, first_norms = zip(*(of_step[0] for of_step in calls), strict=True)
    assert values(path, LOSS) == pytest.approx(first_losses)
    assert values(path, GRAD_NORM, "0.weight") == pytest.approx(first_norms, rel=1e-5)
    assert values(path, CLOSURE_CALLS) == [len(of_step) for of_step in calls]
    assert values(path, BACKWARD_CALLS) == [1, 1, 1]


class Perturbing(torch.optim.SGD):
    """Move the weights, call the closure there, move them back and step: as SAM does."""

    def step(self, closure):
        parameters = self.param_groups[0]["params"]
        with torch.no_grad():
            torch._foreach_add_(parameters, 0.1)
        with torch.enable_grad():
            closure()
        with torch.no_grad():
            torch._foreach_add_(parameters, -0.1)
            torch._foreach_add_(parameters, [p.grad for p in parameters], alpha=-0.01)


def test_a_closure_called_at_other_weights_is_not_the_step(model, path):
    optimizer = Perturbing(model.parameters(), lr=0.01)
    losses = []
    with watch(model, optimizer, path) as w:
        for _ in range(3):
            optimizer.zero_grad()
            losses.append(float(backward(model)))
            optimizer.step(lambda: backward(model))
    assert w.steps == 3
    assert values(path, LOSS) == pytest.approx(losses)
    assert values(path, CLOSURE_CALLS) == [1, 1, 1]


def test_a_step_twice_without_backward(model, optimizer, path):
    with watch(model, optimizer, path) as w:
        backward(model)
        optimizer.step()
        optimizer.step()
    assert w.steps == 2
    assert values(path, BACKWARD_CALLS) == [1, 0]


def test_a_loss_that_is_nan(model, optimizer, path):
    with watch(model, optimizer, path):
        (model(torch.ones(1, 3)).sum() * math.nan).backward()
        optimizer.step()
    assert math.isnan(values(path, LOSS)[0])


# Ends.


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("oh"), "failed"),
        (KeyboardInterrupt(), "interrupted"),
        (SystemExit(0), "finished"),
        (SystemExit(3), "failed"),
    ],
)
def test_an_exception_in_the_loop(model, optimizer, path, error, status):
    with pytest.raises(type(error)) as caught, watch(model, optimizer, path):
        step(model, optimizer)
        step(model, optimizer)
        raise error
    assert caught.value is error
    run = holter.Run.load(path)
    assert run.meta.status == status
    assert len(run[LOSS][""]) == 2  # the open step is written
    events = run.events_of(ExceptionRaised)
    assert len(events) == (status != "finished")
    if events:
        assert events[0].what.type == type(error).__name__
        assert Path(__file__).name in events[0].what.where
    assert not optimizer._optimizer_step_pre_hooks


def test_as_an_object_closed_twice_and_used_afterwards(model, optimizer, path, capfd):
    w = watch(model, optimizer, path)
    step(model, optimizer)
    w.close()
    w.close()
    w.log(loss=1.0)
    w.add(model, torch.optim.SGD(model.parameters(), lr=0.1))
    w.note("too late")
    step(model, optimizer)
    assert w.steps == 1
    assert len(values(path, LOSS)) == 1
    assert LOSS_LOGGED not in holter.Run.load(path)
    assert capfd.readouterr().err == ""


def test_a_note_is_kept(model, optimizer, path):
    with watch(model, optimizer, path) as w:
        w.note("something stayed unseen")
    assert "something stayed unseen" in holter.Run.load(path).meta.notes


@pytest.mark.parametrize(
    "order",
    [(0, 1), (1, 0)],
)
def test_two_watches_closed_in_either_order(model, optimizer, tmp_path, order):
    originals = [torch.autograd.backward, functional.cross_entropy, vars(nn.Module)["train"]]
    watches = [watch(model, optimizer, tmp_path / str(number)) for number in range(2)]
    step(model, optimizer)
    watches[order[0]].close()
    step(model, optimizer)
    watches[order[1]].close()
    step(model, optimizer)
    assert len(values(tmp_path / str(order[0]), LOSS)) == 1
    assert len(values(tmp_path / str(order[1]), LOSS)) == 2
    now = [torch.autograd.backward, functional.cross_entropy, vars(nn.Module)["train"]]
    assert all(a is b for a, b in zip(now, originals, strict=True))


def test_two_watches_one_after_the_other(model, optimizer, tmp_path):
    for number in (1, 2):
        with watch(model, optimizer, tmp_path / str(number)):
            for _ in range(number):
                step(model, optimizer)
    assert [len(values(tmp_path / str(number), LOSS)) for number in (1, 2)] == [1, 2]


# Folders.


def test_a_folder_that_holds_a_run(model, optimizer, path):
    with watch(model, optimizer, path):
        step(model, optimizer)
    original = torch.autograd.backward
    with pytest.raises(holter.HolterError, match="already holds a run"):
        watch(model, optimizer, path)
    assert torch.autograd.backward is original
    assert not optimizer._optimizer_step_pre_hooks


def test_resuming_goes_on_counting(model, optimizer, path):
    with watch(model, optimizer, path):
        for _ in range(3):
            step(model, optimizer)
    with watch(model, optimizer, path, resume=True) as w:
        for _ in range(2):
            step(model, optimizer)
    assert w.steps == 2
    run = holter.Run.load(path)
    assert run[LOSS][""].steps.tolist() == [0, 1, 2, 3, 4]
    assert run.meta.status == "finished"
    assert [event.step for event in run.events_of(Resumed)] == [3]


def test_resuming_where_nothing_is(model, optimizer, path):
    with watch(model, optimizer, path, resume=True):
        step(model, optimizer)
    assert holter.Run.load(path)[LOSS][""].steps.tolist() == [0]


def test_the_default_folder(model, optimizer, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["some/train_it.py"])
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    paths = []
    for _ in range(2):
        with holter.watch(model, optimizer) as w:
            step(model, optimizer)
        paths.append(w.path)
    assert paths[0] != paths[1]
    assert all(re.fullmatch(r"train_it-\d{8}-\d{6}(-\d+)?", each.name) for each in paths)
    assert all((tmp_path / "holter-runs" / each.name / "rank-0").is_dir() for each in paths)
    assert capfd.readouterr().err.count("recording to") == 2


def test_a_folder_that_cannot_be_written(model, optimizer, tmp_path, monkeypatch, capfd):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "file").write_text("not a folder")
    with watch(model, optimizer, tmp_path / "file" / "run") as w:
        step(model, optimizer)
    assert w.path.is_relative_to(tmp_path / "temporary")
    assert len(values(w.path, LOSS)) == 1
    assert capfd.readouterr().err.count("cannot write to") == 1


# Names.


def test_lists_and_mappings_give_names(path, tmp_path):
    def parts():
        models = [nn.Linear(3, 3), nn.Linear(3, 1)]
        return models, [torch.optim.SGD(each.parameters(), lr=0.1) for each in models]

    def train(models, optimizers):
        models[1](models[0](torch.ones(1, 3))).sum().backward()
        for each in optimizers:
            each.step()

    models, optimizers = parts()
    with watch(models, optimizers, tmp_path / "list"):
        train(models, optimizers)
    assert list(holter.Run.load(tmp_path / "list")[GRAD_NORM]) == [
        "Linear.weight", "Linear.bias", "Linear (2).weight", "Linear (2).bias",
    ]  # fmt: skip
    models, optimizers = parts()
    names = ("encoder", "decoder")
    with watch(
        dict(zip(names, models, strict=True)), dict(zip(names, optimizers, strict=True)), path
    ):
        train(models, optimizers)
    run = holter.Run.load(path)
    assert set(run[GRAD_NORM]) == {f"{n}.{p}" for n in names for p in ("weight", "bias")}
    assert set(run[LOSS]) == set(names)
    assert set(run[LR]) == {"encoder group 0", "decoder group 0"}


class Wrapper(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


@pytest.mark.parametrize("wraps", [1, 2])
def test_wrappers_leave_no_trace_in_names(model, optimizer, path, wraps):
    wrapped = model
    for _ in range(wraps):
        wrapped = Wrapper(wrapped)
    with watch(wrapped, optimizer, path):
        step(wrapped, optimizer)
    run = holter.Run.load(path)
    assert set(run[GRAD_NORM]) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert list(run[MODE_TRAINING]) == ["Sequential"]


def test_a_submodule_that_happens_to_be_called_module_keeps_names_apart(path):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))
            self.module = nn.Linear(3, 1, bias=False)

        def forward(self, x):
            return self.module(x * self.weight)

    model = Both()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer, path):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    assert len(holter.Run.load(path)[GRAD_NORM]) == 2


def test_trainings_one_after_the_other_in_one_watch(model, optimizer, path):
    with watch(model, optimizer, path) as w:
        step(model, optimizer)
        for _ in range(2):
            other = nn.Linear(3, 2)
            again = torch.optim.SGD(other.parameters(), lr=0.1)
            w.add(other, again)
            step(other, again)
            step(other, again)
    run = holter.Run.load(path)
    assert w.steps == run.steps == 5
    assert sum(len(each) for each in run[LOSS].values()) == 5
    assert sum(len(s) for name, s in run[GRAD_NORM].items() if name.endswith("weight")) == 2 + 4


# Out of the way.


class Steps(Dataset):
    """Steps an optimizer in whatever process reads it."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def __len__(self):
        return 6

    def __getitem__(self, index):
        self.optimizer.step()
        return torch.ones(3), 0


def test_forked_workers_record_nothing(model, optimizer, path):
    loader = DataLoader(
        Steps(torch.optim.SGD(model.parameters(), lr=0.1)), 2, num_workers=2,
        multiprocessing_context="fork",
    )  # fmt: skip
    optimizer = loader.dataset.optimizer
    with watch(model, optimizer, path) as w:
        step(model, optimizer)
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    run = holter.Run.load(path)
    assert w.steps == run.steps == 4
    assert run.meta.status == "finished"
    records = sum(len(each.stamps) for name in ("loss",) for each in run.tables[name]._chunks)
    assert records == 4
    assert verify(path) > 0


def test_closing_in_a_forked_child_leaves_the_run_open(model, optimizer, path):
    w = watch(model, optimizer, path)
    step(model, optimizer)
    if (child := os.fork()) == 0:
        w.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert holter.Run.load(path).meta.status == "running"
    w.close()
    assert holter.Run.load(path).meta.status == "finished"


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), saved],
    ids=["deepcopy", "pickle", "torch.save"],
)  # fmt: skip
def test_a_copy_carries_no_watch(model, optimizer, path, duplicate):
    with watch(model, optimizer, path) as w:
        step(model, optimizer)
        twin, again = duplicate((model, optimizer))
        step(twin, again)
        step(twin, again)
        step(model, optimizer)
    assert w.steps == 2
    assert not again._optimizer_step_pre_hooks
    assert not any(module._forward_hooks for module in twin.modules())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_model(model, optimizer, path, backend):
    torch._dynamo.reset()
    names = {name for name, _ in model.named_parameters()}
    compiled = torch.compile(model, backend=backend)
    with watch(compiled, optimizer, path) as w:
        losses = [float(step(compiled, optimizer)) for _ in range(3)]
    assert w.steps == 3
    run = holter.Run.load(path)
    notes = run.meta.notes
    assert notes and all("is compiled" in note for note in notes)
    assert values(path, LOSS) == pytest.approx(losses)
    assert set(run[GRAD_NORM]) == names


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_training_step(model, optimizer, path):
    torch._dynamo.reset()

    @torch.compile(backend="eager")
    def loss_of(x, y):
        return functional.cross_entropy(model(x), y)

    losses = []
    with watch(model, optimizer, path):
        for _ in range(3):
            optimizer.zero_grad()
            loss = loss_of(torch.randn(5, 3), torch.zeros(5).long())
            loss.backward()
            losses.append(float(loss.detach()))
            optimizer.step()
    notes = holter.Run.load(path).meta.notes
    assert notes and all("may be compiled" in note for note in notes)
    assert values(path, LOSS) == pytest.approx(losses)


class Criterion(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(x, y)


@pytest.mark.filterwarnings("ignore")
def test_scripting_a_module_that_calls_a_loss_function(model, optimizer, path):
    with watch(model, optimizer, path):
        scripted = torch.jit.script(Criterion())
        x, y = torch.randn(4, 2), torch.zeros(4).long()
        assert torch.equal(scripted(x, y), functional.cross_entropy(x, y))


def test_an_exception_in_backward_passes(model, optimizer, path):
    with watch(model, optimizer, path) as w:
        loss = model(torch.ones(1, 3)).sum()
        loss.backward()
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
        optimizer.step()
        step(model, optimizer)
    assert w.steps == 2
    assert holter.Run.load(path).meta.notes == ()


def test_switching_gradients_off_does_not_change_what_is_read(model, optimizer, path):
    with watch(model, optimizer, path), torch.no_grad():
        for _ in range(2):
            with torch.enable_grad():
                backward(model)
            optimizer.step()
    assert len(values(path, LOSS)) == 2
    assert len(values(path, GRAD_NORM, "0.weight")) == 2
