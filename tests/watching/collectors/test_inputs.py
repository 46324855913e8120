"""What models are called with in training."""

import copy
import io
import math
import warnings
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from holter import Run
from holter.record.signals import (
    INPUT_ABSMAX,
    INPUT_FINGERPRINT,
    INPUT_MEAN,
    INPUT_NONFINITE,
    INPUT_OTHER_ABSMAX,
    INPUT_OTHER_MEAN,
    INPUT_OTHER_STD,
    INPUT_STD,
)
from holter.watching.collectors.batches import Batches, spread
from watching.collectors.trainings import values, watching


class Named(nn.Module):
    """Takes its input by name, in a dict, or behind another argument."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, scale=1.0, batch=None, *, x=None):
        x = batch["x"] if batch is not None else x
        return self.layer(x) * scale


def train(model, optimizer, batches, call=lambda model, x: model(x)):
    for x in batches:
        optimizer.zero_grad()
        call(model, x).sum().backward()
        optimizer.step()


def record(path, model, batches, call=lambda model, x: model(x), **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(path, model, optimizer, **options):
        train(model, optimizer, batches, call)
    return Run.load(path)


def batches(count=4):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(5, 3, generator=generator) * 2 + 7 for _ in range(count)]


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (lambda: nn.Linear(3, 2), lambda m, x: m(x)),
        (Named, lambda m, x: m(x=x)),
        (Named, lambda m, x: m(2.0, {"x": x})),
        (Named, lambda m, x: m(batch={"mask": None, "x": x})),
    ],
    ids=["place", "name", "dict", "dict by name"],
)
def test_statistics_of_the_batch(tmp_path, make, call):
    given = batches()
    run = record(tmp_path / "run", model := make(), given, call)
    label = type(model).__name__
    assert values(run, INPUT_MEAN, label) == pytest.approx([float(x.mean()) for x in given])
    assert values(run, INPUT_STD, label) == pytest.approx(
        [float(x.std(correction=0)) for x in given], rel=1e-5
    )
    assert values(run, INPUT_ABSMAX, label) == [float(x.abs().max()) for x in given]
    assert values(run, INPUT_NONFINITE, label) == [0] * 4
    assert len(set(values(run, INPUT_FINGERPRINT, label))) == 4


def test_equal_batches_have_equal_fingerprints(tmp_path):
    given = batches(3)
    run = record(tmp_path / "run", nn.Linear(3, 2), [*given, *(x.clone() for x in given)])
    prints = values(run, INPUT_FINGERPRINT, "Linear")
    assert prints[:3] == prints[3:]
    assert len(set(prints)) == 3


@pytest.mark.parametrize(
    "batch",
    [
        torch.randn(64, 3, 40, 40),
        torch.randn(64, 3, 40, 40).to(memory_format=torch.channels_last),
        torch.randint(0, 50000, (16, 900)),
        torch.randint(0, 256, (300, 28, 28), dtype=torch.uint8),
        torch.randn(30, 4).bfloat16(),
        torch.rand(9000) > 0.5,
    ],
    ids=["images", "channels last", "tokens", "bytes", "bfloat16", "bools"],
)
def test_a_fingerprint_minds_the_order_and_few_elements(batch):
    measure = Batches()
    one = measure.fingerprint(batch)
    assert one == measure.fingerprint(batch.clone()) != 0
    assert one != measure.fingerprint(batch.flip(0))
    assert math.isfinite(one)


def test_many_fingerprints_do_not_meet():
    measure = Batches()
    generator = torch.Generator().manual_seed(0)
    raw = (torch.randint(0, 256, (8, 3, 32, 32), generator=generator) for _ in range(500))
    assert len({torch.tensor(measure.fingerprint(x.float())).item() for x in raw}) == 500


@pytest.mark.parametrize("size", [20, 5000])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_counted(tmp_path, size, bad):
    fine, poisoned = torch.randn(size, 3), torch.randn(size, 3)
    poisoned[1, 1] = poisoned[size - 1, 2] = bad
    run = record(tmp_path / "run", nn.Linear(3, 2), [fine, poisoned])
    assert values(run, INPUT_NONFINITE, "Linear") == [0, 2]


class Weighted(nn.Module):
    """Multiplies what it is given, sparse or not, and whatever holds it."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 2))

    def forward(self, given):
        given = getattr(given, "x", given)
        return (given.data if isinstance(given, PackedSequence) else given) @ self.weight


class Moved:
    """A batch as libraries define it."""

    def __init__(self, x):
        self.__dict__["store"] = {"x": x}

    def __getattr__(self, name):
        return self.__dict__["store"][name]

    def to(self, device):
        return Moved(self.x.to(device))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.parametrize(
    "held",
    [
        torch.Tensor.to_sparse,
        torch.Tensor.to_sparse_csr,
        lambda x: torch.nested.nested_tensor([x[:2], x[2:]], layout=torch.jagged),
        lambda x: pack_sequence([x[:3], x[3:]]),
        Moved,
        lambda x: SimpleNamespace(x=x, words=["a", "b"]),
    ],
    ids=["coo", "csr", "nested", "packed", "object that moves", "attributes"],
)
def test_statistics_of_what_is_no_dense_tensor(tmp_path, held):
    given = batches()
    for x in given:
        x[x < 6] = 0  # which a sparse tensor leaves out

    def call(model, x):
        output = model(held(x))
        return output.values() if output.is_nested else output

    run = record(tmp_path / "run", Weighted(), given, call)
    assert not run.meta.notes
    assert values(run, INPUT_MEAN, "Weighted") == pytest.approx([float(x.mean()) for x in given])
    assert values(run, INPUT_STD, "Weighted") == pytest.approx(
        [float(x.std(correction=0)) for x in given], rel=1e-5
    )
    assert values(run, INPUT_ABSMAX, "Weighted") == [float(x.abs().max()) for x in given]
    assert len(set(values(run, INPUT_FINGERPRINT, "Weighted"))) == 4


def test_places_of_a_sparse_tensor_are_in_its_fingerprint(tmp_path):
    given = [torch.eye(3)[torch.tensor(order)].to_sparse() for order in ([0, 1, 2], [1, 0, 2])]
    run = record(tmp_path / "run", Weighted(), [*given, given[0]])
    one, other, again = values(run, INPUT_FINGERPRINT, "Weighted")
    assert one == again != other
    assert values(run, INPUT_ABSMAX, "Weighted") == [1, 1, 1]


def test_says_what_cannot_be_read(tmp_path):
    class Own(torch.Tensor):
        pass

    run = record(tmp_path / "run", nn.Linear(3, 2), [x.as_subclass(Own) for x in batches()])
    assert INPUT_MEAN not in run
    assert any("called with a tensor of the class Own" in note for note in run.meta.notes)


class Recurrent(nn.Module):
    """Is given its state, and returns it, on the side of its data on which it is wanted."""

    def __init__(self, *, first=False, tokens=True):
        super().__init__()
        self.embed = nn.Embedding(9, 4) if tokens else nn.Linear(3, 4)
        self.rnn, self.first = nn.LSTM(4, 5), first

    def forward(self, one, other):
        data, state = (other, one) if self.first else (one, other)
        output, state = self.rnn(self.embed(data), state)
        return (state, output) if self.first else (output, state)


def carried(model, optimizer, batches, *, repackage, restart=False):
    """Train on one batch after the other; the state goes along, or begins again."""
    state = (torch.zeros(1, 2, 5), torch.zeros(1, 2, 5))
    for x in batches:
        loss = 0
        state = (torch.zeros(1, 2, 5), torch.zeros(1, 2, 5)) if restart else repackage(state)
        for part in x.split(3) if restart else [x]:
            if model.first:
                state, output = model(state, part)
            else:
                output, state = model(part, state)
            loss = loss + output.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def detached(state):
    return tuple(each.detach() for each in state)


def copied(state):
    return tuple(each.detach().clone() for each in state)


@pytest.mark.parametrize(
    ("repackage", "restart", "first"),
    [
        (detached, False, False),
        (copied, False, False),
        (detached, True, False),
        (detached, False, True),
    ],
    ids=["detached", "copied", "begun again in each step", "in the first place"],
)
def test_a_carried_state_is_no_data(tmp_path, repackage, restart, first):
    model = Recurrent(first=first)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    given = [torch.randint(9, (6, 2)) for _ in range(6)]
    with watching(tmp_path / "run", model, optimizer):
        carried(model, optimizer, [*given, *given], repackage=repackage, restart=restart)
    run = Run.load(tmp_path / "run")
    late = 2 if first else 0  # the first calls decide
    prints = values(run, INPUT_FINGERPRINT, "Recurrent")
    assert prints[late:6] == prints[6 + late :]
    if not first:
        assert INPUT_MEAN not in run
        assert INPUT_NONFINITE not in run


def test_data_beside_a_carried_state(tmp_path):
    model = Recurrent(tokens=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    given = [torch.randn(6, 2, 3) + 5 for _ in range(4)]
    with watching(tmp_path / "run", model, optimizer):
        carried(model, optimizer, given, repackage=detached)
    assert values(Run.load(tmp_path / "run"), INPUT_MEAN, "Recurrent") == pytest.approx(
        [float(x.mean()) for x in given]
    )


def test_an_autoencoder_that_returns_more_has_inputs(tmp_path):
    class Rebuilt(nn.Linear):
        def forward(self, x, weights):
            return super().forward(x) * weights, x, weights

    given = batches()
    call = lambda model, x: model(x, torch.ones(3))[0]  # noqa: E731
    run = record(tmp_path / "run", Rebuilt(3, 3), given, call)
    assert values(run, INPUT_MEAN, "Rebuilt") == pytest.approx([float(x.mean()) for x in given])


def test_tokens_have_a_fingerprint_alone(tmp_path):
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 1))
    run = record(tmp_path / "run", model, [torch.randint(0, 9, (2, 6)) for _ in range(3)])
    assert len(values(run, INPUT_FINGERPRINT, "Sequential")) == 3
    assert INPUT_MEAN not in run
    assert INPUT_NONFINITE not in run


def test_validation_is_no_input_of_training(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    given = batches(2)
    with watching(tmp_path / "run", model, optimizer):
        for x in given:
            model.eval()
            with torch.no_grad():
                model(x + 100)
            model(x + 200)  # without no_grad: not trained on all the same
            model.train()
            train(model, optimizer, [x])
    assert values(Run.load(tmp_path / "run"), INPUT_MEAN, "Sequential") == pytest.approx(
        [float(x.mean()) for x in given]
    )


def test_training_in_eval_mode_has_inputs(tmp_path):
    given = batches(2)
    run = record(tmp_path / "run", nn.Linear(3, 2).eval(), given)
    assert values(run, INPUT_MEAN, "Linear") == pytest.approx([float(x.mean()) for x in given])


def test_two_models(tmp_path):
    one, two = nn.Linear(3, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.01)
    given = batches(3)
    with watching(tmp_path / "run", {"one": one, "two": two}, optimizer):
        for x in given:
            two(one(x)).sum().backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, INPUT_MEAN, "one") == pytest.approx([float(x.mean()) for x in given])
    assert len(values(run, INPUT_MEAN, "two")) == 3


def test_steps_that_a_scaler_skips_are_not_held_against_the_model(tmp_path):
    model, scaler = nn.Linear(3, 2), torch.amp.GradScaler("cpu", init_scale=1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(tmp_path / "run", model, optimizer):
        for factor in [math.inf] * 6 + [1.0] * 3:
            optimizer.zero_grad()
            scaler.scale(model(torch.ones(5, 3)).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
    run = Run.load(tmp_path / "run")
    assert run.meta.notes == ()
    assert run[INPUT_MEAN]["Linear"].steps.tolist() == list(range(9))


def test_a_model_whose_parts_are_called_is_told_of(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    run = record(tmp_path / "run", model, batches(5), lambda m, x: m[1](m[0](x)))
    assert INPUT_MEAN not in run
    assert INPUT_FINGERPRINT not in run
    assert "inputs are not recorded, but whether they are finite" in " ".join(run.meta.notes)


def test_the_parts_of_a_model_tell_whether_its_data_are_finite(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    given = batches(5)
    given[3][0, 0] = float("nan")
    run = record(tmp_path / "run", model, given, lambda m, x: m[1](m[0](x)))
    assert run[INPUT_NONFINITE]["Sequential"].values.tolist() == [0, 0, 1, 0]  # from step 1 on


def test_the_model_can_be_copied_saved_scripted_and_compiled_meanwhile(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(tmp_path / "run", model, optimizer):
        train(model, optimizer, batches(1))
        copied = copy.deepcopy(model)
        torch.save(model, io.BytesIO())
        x = batches(1)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch has enough of both of scripts and of hooks
            assert torch.equal(torch.jit.script(model)(x), model(x))
            assert torch.equal(torch.compile(model, backend="eager")(x), copied(x))
        train(model, optimizer, batches(1))
    assert not copied._forward_pre_hooks


def test_a_compiled_model_is_left_alone(tmp_path):
    model = torch.compile(nn.Sequential(nn.Linear(3, 2)), backend="eager")
    run = record(tmp_path / "run", model, batches(3))
    assert INPUT_MEAN not in run
    assert "inputs are not recorded" in " ".join(run.meta.notes)


def test_spread_is_exact_far_from_zero():
    std, mean = spread(torch.randn(100, 50) + 1e4)
    assert float(std) == pytest.approx(1, rel=0.05)
    assert float(mean) == pytest.approx(1e4, rel=1e-3)


class Graph(nn.Module):
    """Takes an adjacency, features, a number for each sample, a mask by name, and what it made."""

    def __init__(self):
        super().__init__()
        self.embedding, self.layer = nn.Linear(3, 4), nn.Linear(3, 2)

    def forward(self, adjacency, features, age, *, made, mask):
        return torch.sparse.mm(adjacency, self.layer(features)) + age + made.sum() + mask.sum()


def test_further_arguments_have_a_scale(tmp_path):
    given, adjacency = batches(6), torch.eye(5).to_sparse()
    given[2] = given[2] * 1e8

    def call(model, x):
        made, mask = model.embedding(x), torch.full((5, 2), -9.0)
        return model(adjacency, x, torch.full((5, 1), 1e6), made=made, mask=mask)

    run = record(tmp_path / "run", Graph(), given, call)
    assert values(run, INPUT_ABSMAX, "Graph") == [1.0] * 6
    features = "Graph, argument 2"
    assert set(run[INPUT_OTHER_STD]) == {features}
    assert values(run, INPUT_OTHER_ABSMAX, features) == [float(x.abs().max()) for x in given]
    assert values(run, INPUT_OTHER_MEAN, features) == pytest.approx(
        [float(x.mean()) for x in given], rel=1e-5
    )


class Pair(nn.Module):
    """Takes two batches in a dict."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, batch):
        return self.one(batch["x"]) + self.other(batch["y"])


def test_further_arguments_in_a_dict_by_name_have_one(tmp_path):
    def call(model, x):
        return model(batch={"x": x, "y": 100 * x, "empty": torch.zeros(0, 3)})

    run = record(tmp_path / "run", Pair(), given := batches(), call)
    assert list(run[INPUT_OTHER_STD]) == ["Pair, argument batch['y']"]
    assert values(run, INPUT_OTHER_STD, "Pair, argument batch['y']") == pytest.approx(
        [100 * float(x.std(correction=0)) for x in given], rel=1e-5
    )
