import copy
import gc
import io
import itertools
import pickle
import subprocess
import sys
import weakref
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules import module as torch_module
from torch.utils.checkpoint import checkpoint

from holter import Run
from holter.record.signals import (
    ACTIVATION_ABSMAX,
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_MEAN,
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
)
from holter.watching.collectors.activations import _SILENT, Activations
from holter.watching.collectors.moments import AfterUpdate, BackwardBegins, Closing, Depth, Joined
from holter.watching.collectors.outputs import CALLS, SAMPLES, STEPS
from holter.watching.collectors.roster import Roster
from watching.collectors.trainings import values, watching

BASIC = (ACTIVATION_MEAN, ACTIVATION_STD, ACTIVATION_ABSMAX)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
    yield
    left = dict(torch_module._global_forward_hooks)
    torch_module._global_forward_hooks.clear()
    assert not left


class Reader:
    """A collector and the moments of a loop around it."""

    def __init__(self, *models):
        self.collector = Activations()
        self.roster = Roster().joined_by([("", each) for each in models])
        self.readings = []

    def open(self):
        assert not list(self.collector.read(Joined(self.roster, Depth.FULL)))

    def close(self):
        moment = BackwardBegins((), opens_step=True, roster=self.roster)
        self.readings = list(self.collector.read(moment))
        for each in self.readings:
            each.check()
        return self.found()

    def found(self):
        """By signal and owner."""
        table = {}
        for signal, owners, read, at in self.readings:
            places = range(len(owners)) if at is None else at
            table[signal] = {owners[i]: float(v) for i, v in zip(places, read, strict=True)}
        return table

    def __call__(self, forward):
        self.open()
        forward()
        return self.close()


def oracle(outputs):
    """The three basic statistics of a list of outputs, in float64 and one by one."""
    pool = [float(v) for each in outputs for v in each.detach().double().flatten()]
    mean = sum(pool) / len(pool)
    variance = sum((v - mean) ** 2 for v in pool) / len(pool)
    return mean, variance**0.5, max(abs(v) for v in pool)


def agrees(found, owner, *outputs):
    for signal, expected in zip(BASIC, oracle(outputs), strict=True):
        assert found[signal][owner] == pytest.approx(expected, rel=1e-5, abs=1e-7), signal


def recorded(model, forward):
    """What the module at each path returned, by hooks of the test's own."""
    outputs = {}
    handles = [
        module.register_forward_hook(
            lambda _m, _i, out, name=name: outputs.setdefault(name, []).append(copy_of(out))
        )
        for name, module in model.named_modules()
    ]
    forward()
    for each in handles:
        each.remove()
    return outputs


def copy_of(output):
    return output.detach().clone() if isinstance(output, torch.Tensor) else copy_of(output[0])


# What is read.


def test_mlp():
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    x = torch.randn(20, 6)
    found = Reader(model)(lambda: model(x))
    expected = recorded(model, lambda: model(x))
    for name in ("0", "1", "2"):
        agrees(found, name, *expected[name])
    assert set(found[ACTIVATION_MEAN]) == {"0", "1", "2"}
    assert ACTIVATION_SATURATED_FRACTION not in found


def test_a_model_that_is_one_module():
    model = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    agrees(Reader(model)(lambda: model(x)), "Linear", model(x))


def test_owners_have_the_prefix_of_their_model():
    one, two = nn.Sequential(nn.Linear(3, 2)), nn.Linear(2, 2)
    found = Reader(one, two)(lambda: two(one(torch.randn(4, 3))))
    assert set(found[ACTIVATION_MEAN]) == {"Sequential.0", "Linear"}


def test_in_place_modules_do_not_spoil_what_was_before_them():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    x = torch.randn(2, 3, 6, 6)
    expected = recorded(model, lambda: model(x))
    found = Reader(model)(lambda: model(x))
    for name in ("0", "1", "2"):
        agrees(found, name, *expected[name])


def test_lstm_and_packed_sequences():
    model = nn.ModuleDict({"lstm": nn.LSTM(3, 5, batch_first=True), "head": nn.Linear(5, 2)})
    x = torch.randn(4, 7, 3)
    out = model["lstm"](x)[0]
    found = Reader(model)(lambda: model["head"](model["lstm"](x)[0]))
    agrees(found, "lstm", out)
    agrees(found, "head", model["head"](out))
    packed = nn.utils.rnn.pack_padded_sequence(x, [7, 5, 2, 1], batch_first=True)
    agrees(Reader(model)(lambda: model["lstm"](packed)), "lstm", model["lstm"](packed)[0].data)


def test_transformer_layer_and_the_tuple_of_attention():
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x = torch.randn(3, 5, 8)
    found = Reader(model)(lambda: model(x))
    expected = recorded(model, lambda: model(x))
    assert isinstance(model.self_attn(x, x, x), tuple)
    for name in ("self_attn", "linear1", "linear2", "norm1", "norm2", "dropout1"):
        agrees(found, name, *expected[name])
    assert "self_attn.out_proj" not in found[ACTIVATION_MEAN]


def test_a_module_called_more_than_once_is_pooled():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    one, two = torch.randn(3, 4), 5 * torch.randn(11, 4)
    found = Reader(model)(lambda: (model(one), model(two), model[0](one)))
    agrees(found, "0", model[0](one), model[0](two), model[0](one))
    agrees(found, "1", model(one), model(two))
    both = torch.cat([model(one), model(two)])
    expected = (both.abs() > 0.97).double().mean()
    assert found[ACTIVATION_SATURATED_FRACTION]["1"] == pytest.approx(float(expected))


def test_many_calls_take_bounded_memory():
    model = nn.Linear(4, 4)
    inputs = torch.randn(5 * CALLS, 2, 4)
    reader = Reader(model)
    reader.open()
    for each in inputs:
        model(each)
        (slot,) = reader.collector._slots.values()
        assert len(slot.rows) <= CALLS
    agrees(reader.close(), "Linear", *[model(each) for each in inputs])


@dataclass
class Output:
    mask: torch.Tensor
    hidden: torch.Tensor


class Wrapped(nn.Module):
    """Returns its input in whatever shape it was told to."""

    def __init__(self, wrap):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.wrap = wrap

    def forward(self, x):
        return self.wrap(x * self.scale)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: {"logits": x},
        lambda x: (None, [x, x + 1]),
        lambda x: Output(mask=torch.ones(2, dtype=torch.long), hidden=x),
        lambda x: {"size": 3, "mask": x > 0, "deep": {"er": (x,)}},
        lambda x: (torch.zeros(0), x),
        lambda x: (x.detach().to_sparse(), torch.complex(x, x), x),
    ],
    ids=["dict", "tuple", "dataclass", "deep", "empty first", "sparse and complex first"],
)
def test_the_first_floating_tensor_of_an_output(wrap):
    model = Wrapped(wrap)
    x = torch.randn(5, 3)
    agrees(Reader(model)(lambda: model(x)), "Wrapped", x * 2)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: None,
        lambda x: "text",
        lambda x: x[:0],
        lambda x: x.long(),
        lambda x: x.detach().to_sparse(),
        lambda x: torch.complex(x, x),
        lambda x: x.to(torch.float8_e4m3fn),
        lambda x: x.to("meta"),
        lambda x: [[[[[[x]]]]]],
        lambda x: Output,
    ],
)
def test_outputs_with_nothing_to_read_are_skipped(wrap):
    model = Wrapped(wrap)
    reader = Reader(model)
    assert reader(lambda: model(torch.randn(5, 3))) == {}
    assert reader.collector._error is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_statistics_of_half_and_double(dtype):
    model = Wrapped(lambda x: x.to(dtype))
    x = 300 * torch.randn(300, 300)  # the sum of its squares overflows float16
    found = Reader(model)(lambda: model(x))
    agrees(found, "Wrapped", model(x)[:0], model(x))


def test_autocast():
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    x = torch.randn(20, 6)

    def forward():
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    found = Reader(model)(forward)
    expected = recorded(model, forward)
    assert expected["0"][0].dtype == torch.bfloat16
    for name in ("0", "1", "2"):
        agrees(found, name, *expected[name])


def test_a_spread_around_a_large_mean():
    model = Wrapped(lambda x: x + 100)
    x = torch.randn(1000, 10)
    found = Reader(model)(lambda: model(x))
    assert found[ACTIVATION_STD]["Wrapped"] == pytest.approx(float((2 * x).std()), rel=1e-2)
    constant = Wrapped(lambda x: torch.full((100, 7), 0.1) + 0 * x.sum())
    assert Reader(constant)(lambda: constant(x))[ACTIVATION_STD]["Wrapped"] < 1e-4


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_data(bad):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    with torch.no_grad():
        model[0].bias[0] = bad
    found = Reader(model)(lambda: model[1](torch.ones(2, 3) + 0 * model[0](torch.ones(2, 3))[0, 1]))
    assert not torch.tensor(found[ACTIVATION_MEAN]["0"]).isfinite()
    assert not torch.tensor(found[ACTIVATION_ABSMAX]["0"]).isfinite()
    assert torch.tensor(found[ACTIVATION_MEAN]["1"]).isfinite()


def test_parametrized_modules_are_read_and_their_parametrizations_are_not():
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.ReLU())
    x = torch.randn(5, 3)
    found = Reader(model)(lambda: model(x))
    assert set(found[ACTIVATION_MEAN]) == {"0", "1"}
    agrees(found, "0", model[0](x))


@pytest.mark.parametrize(
    "relu",
    [
        functional.relu,
        lambda x: torch.relu(x),  # noqa: PLW0108  (looked up when it is called)
        lambda x: x.relu(),
        lambda x: functional.relu(x, inplace=True),
        nn.ReLU(),
        nn.ReLU(inplace=True),
    ],
)
def test_a_relu_is_read_once_as_a_module_or_behind_its_layer(relu, tmp_path):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.out = nn.Linear(3, 4), nn.Linear(4, 1)
            self.relu = relu

        def forward(self, x):
            return self.out(self.relu(self.fc(x)))

    model = Net()
    with torch.no_grad():
        model.fc.bias[:3] = -100.0
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(SAMPLES, 3)).mean().backward()
            optimizer.step()
    table = Run.load(tmp_path / "run")[ACTIVATION_DEAD_FRACTION]
    name = "relu" if isinstance(relu, nn.Module) else "relu(fc)"
    assert {owner: series.values.tolist() for owner, series in table.items()} == {
        name: [pytest.approx(3 / 4)] * 4
    }


def test_torch_func_leaves_nothing_behind():
    model = nn.Linear(3, 1)
    reader = Reader(model)
    reader.open()

    def loss(weights, x):
        return torch.func.functional_call(model, weights, x).sum()

    weights = {name: each.detach() for name, each in model.named_parameters()}
    torch.func.grad(loss)(weights, torch.randn(2, 3))
    torch.func.vmap(loss, (None, 0))(weights, torch.randn(2, 3))
    assert reader.close() == {}
    assert reader.collector._error is None


# Saturation.

SATURATING = [
    (nn.Sigmoid(), lambda y: (y < 0.01) | (y > 0.99)),
    (nn.Tanh(), lambda y: y.abs() > 0.97),
    (nn.Hardsigmoid(), lambda y: (y == 0) | (y == 1)),
    (nn.Hardtanh(-0.3, 0.7), lambda y: (y == y.min()) | (y == y.max())),
    (nn.ReLU6(), lambda y: y == 6),
    (nn.Softmax(dim=-1), lambda y: y.amax(-1) > 0.99),
    (nn.Softmax(dim=1), lambda y: y.amax(1) > 0.99),
    (nn.Softmax2d(), lambda y: y.amax(1) > 0.99),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("module", "truth"), SATURATING, ids=[str(module) for module, _ in SATURATING]
)
def test_saturation(module, truth, dtype):
    model = nn.Sequential(nn.Linear(9, 9), module)
    x = (6 * torch.randn(4, 5, 6, 9)).to(dtype)
    found = Reader(model)(lambda: model[1](x))
    expected = float(truth(module(x).float()).double().mean())
    assert 0 < expected < 1
    assert found[ACTIVATION_SATURATED_FRACTION] == {"1": pytest.approx(expected, rel=1e-6)}


def test_places_of_saturation_among_other_modules():
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.ReLU(), nn.Sigmoid())
    x = 9 * torch.randn(50, 3)
    found = Reader(model)(lambda: (model[0](x), model[3](x)))
    expected = ((x.sigmoid() < 0.01) | (x.sigmoid() > 0.99)).double().mean()
    assert found[ACTIVATION_SATURATED_FRACTION] == {"3": pytest.approx(float(expected))}


# Dead units.


def dead_of(reader, forward, windows=STEPS):
    """The dead fractions found within some sampled steps, by step."""
    return {
        step: found[ACTIVATION_DEAD_FRACTION]
        for step in range(windows)
        if ACTIVATION_DEAD_FRACTION in (found := reader(lambda step=step: forward(step)))
    }


def test_a_unit_is_dead_if_it_is_zero_for_all_samples():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    with torch.no_grad():
        model[0].bias[:3] = -100.0
    x = torch.randn(SAMPLES, 4)
    assert dead_of(Reader(model), lambda _: model(x), 1) == {0: {"1": pytest.approx(3 / 8)}}


def test_a_window_ends_after_some_steps_and_begins_anew():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    one = torch.eye(4)

    # One unit lives in each of the first three steps, none from then on.
    found = dead_of(Reader(model), lambda step: model[1](one[step % 4][None] * (step < 3)), 8)
    assert found == {3: {"1": pytest.approx(1 / 4)}, 7: {"1": 1.0}}


def test_a_window_ends_with_enough_samples():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    found = dead_of(Reader(model), lambda _: model(torch.randn(SAMPLES // 2, 4)), 6)
    assert sorted(found) == [1, 3, 5]


def test_channels_of_convolutions():
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2))
    with torch.no_grad():
        model[1].bias[[1, 4]] = -100.0
    found = dead_of(Reader(model), lambda _: model(torch.randn(2, 3, 8, 8)))
    assert found == {3: {"2": pytest.approx(2 / 6)}}
    # Positions of one picture are alike: they do not make a window shorter.


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv1d(3, 5, 2), (4, 3, 9)),
        (nn.Conv2d(3, 5, 2), (3, 9, 9)),
        (nn.Conv3d(3, 5, 2), (2, 3, 4, 4, 4)),
        (nn.ConvTranspose2d(3, 5, 2), (2, 3, 4, 4)),
        (nn.Linear(3, 5), (3,)),
        (nn.Linear(3, 5), (4, 3)),
        (nn.Linear(3, 5), (4, 6, 3)),
        (nn.Linear(3, 5), (2, 4, 6, 3)),
        (nn.Bilinear(3, 3, 5), (4, 3)),
    ],
    ids=str,
)
def test_the_axis_of_units_is_that_of_the_layer_before(layer, shape):
    model = nn.Sequential(layer, nn.Dropout(0.1), nn.ReLU())
    with torch.no_grad():
        layer.bias.fill_(50.0)
        layer.bias[2] = -50.0
    x = torch.randn(*shape)

    def forward(_):
        out = layer(x, x) if isinstance(layer, nn.Bilinear) else layer(x)
        return model[2](out)

    assert dead_of(Reader(model), forward)[3] == {"2": pytest.approx(1 / 5)}


def test_flattened_channels():
    model = nn.Sequential(nn.Conv2d(3, 5, 2), nn.ReLU())
    with torch.no_grad():
        model[0].bias.fill_(50.0)
        model[0].bias[2] = -50.0
    x = torch.randn(2, 3, 4, 4)
    assert dead_of(Reader(model), lambda _: model[1](model[0](x).flatten(2)))[3] == {
        "1": pytest.approx(1 / 5)
    }


def test_one_relu_behind_several_layers_has_the_units_of_all():
    model = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(3, 7), "relu": nn.ReLU()})
    with torch.no_grad():
        model["a"].bias.fill_(50.0)
        model["b"].bias.fill_(1e4)
        model["b"].bias[:5] = -1e4
    x = torch.randn(SAMPLES, 2)

    def forward(_):
        return model["relu"](model["b"](model["relu"](model["a"](x))))

    assert dead_of(Reader(model), forward, 1) == {0: {"relu": pytest.approx(5 / 10)}}


def test_one_layer_called_twice_has_its_units_once():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(4))
        model[0].bias.zero_()
    one = torch.eye(4)
    found = dead_of(Reader(model), lambda _: (model(one[:1]), model(one[1:2])))
    assert found == {3: {"1": pytest.approx(2 / 4)}}


@pytest.mark.parametrize(
    ("module", "dies"),
    [
        (nn.ReLU(), True),
        (nn.ReLU6(), True),
        (nn.Threshold(0.0, 0.0), True),
        (nn.Softshrink(), True),
        (nn.Hardshrink(), True),
        (nn.Threshold(0.0, 1.0), False),
        (nn.LeakyReLU(), False),
        (nn.GELU(), False),
        (nn.Hardtanh(), False),
    ],
    ids=str,
)
def test_who_can_die(module, dies):
    model = nn.Sequential(nn.Linear(2, 2), module)
    x = torch.tensor([[-3.0, 0.0]]).repeat(8, 1)
    found = dead_of(Reader(model), lambda _: model[1](x))
    alive_below = isinstance(module, nn.Softshrink | nn.Hardshrink)
    assert found == ({3: {"1": 0.5 if alive_below else 1.0}} if dies else {})


def test_nan_is_not_dead():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    x = torch.tensor([[float("nan"), -1.0]])
    assert dead_of(Reader(model), lambda _: model[1](x))[3] == {"1": 0.5}


# When it is read.


def checkpointed(reentrant):
    block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model = nn.ModuleDict({"block": block, "head": nn.Linear(4, 1)})

    def forward(x):
        inner = checkpoint(model["block"], x, use_reentrant=reentrant)
        return model["head"](inner).sum()

    return model, forward


def test_checkpointing_counts_the_first_forward_only():
    model, forward = checkpointed(reentrant=False)
    x = torch.randn(5, 4, requires_grad=True)
    reader = Reader(model)
    reader.open()
    loss = forward(x)
    found = reader.close()
    loss.backward()
    agrees(found, "block.0", model["block"][0](x))
    agrees(found, "block.1", model["block"](x))
    assert all(not slot.rows for slot in reader.collector._slots.values())


def test_reentrant_checkpointing_is_not_recorded():
    model, forward = checkpointed(reentrant=True)
    x = torch.randn(5, 4, requires_grad=True)
    reader = Reader(model)
    reader.open()
    loss = forward(x)
    found = reader.close()
    loss.backward()
    assert set(found[ACTIVATION_MEAN]) == {"head"}


def test_validation_in_between_is_not_read():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.randn(5, 4)

    def forward():
        with torch.no_grad():
            model(100 * x)
        with torch.inference_mode():
            model(100 * x)
        model(x)

    agrees(Reader(model)(forward), "0", model[0](x))


def test_validation_keeps_the_fast_path_of_transformers():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(3, 5, 8)
    reader = Reader(nn.Sequential(layer, nn.Linear(8, 8)))
    reader.open()
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        fast = torch._transformer_encoder_layer_fwd
        patch.setattr(
            torch, "_transformer_encoder_layer_fwd", lambda *a: seen.append(1) or fast(*a)
        )
        with torch.no_grad():
            layer(x)
    assert seen == [1]
    reader.close()


def is_listening():
    return torch_module._has_any_global_hook()


def test_it_listens_in_the_window_only():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    reader = Reader(model)
    collector, roster = reader.collector, reader.roster
    assert not is_listening()
    collector.read(Joined(roster, Depth.REGULAR))
    assert not is_listening()
    collector.read(Joined(roster, Depth.FULL))
    assert is_listening()
    collector.read(BackwardBegins((), opens_step=False, roster=roster))
    assert is_listening()
    collector.read(BackwardBegins((), opens_step=True, roster=roster))
    assert not is_listening()
    model(torch.randn(2, 4))
    collector.read(AfterUpdate(None, roster, Depth.FULL, Depth.FULL))
    assert is_listening()
    collector.read(AfterUpdate(None, roster, Depth.FULL, Depth.FULL))
    collector.read(AfterUpdate(None, roster, Depth.FULL, Depth.LIGHT))
    assert not is_listening()
    collector.read(AfterUpdate(None, roster, Depth.LIGHT, Depth.FULL))
    collector.read(Closing())
    assert not is_listening()
    assert collector.read(BackwardBegins((), opens_step=True, roster=roster)) == []
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_it_knows_what_it_took():
    model = nn.Linear(4, 4)
    reader = Reader(model)
    assert reader.collector.spent == 0
    reader(lambda: model(torch.randn(3, 4)))
    assert 0 < reader.collector.spent < 1


def test_a_second_update_keeps_what_was_read():
    model = nn.Linear(4, 4)
    reader = Reader(model)
    reader.open()
    x = torch.randn(3, 4)
    model(x)
    reader.collector.read(AfterUpdate(None, reader.roster, Depth.FULL, Depth.FULL))
    agrees(reader.close(), "Linear", model(x))


def test_a_window_that_is_given_up_leaves_nothing():
    model = nn.Linear(4, 4)
    reader = Reader(model)
    reader.open()
    model(torch.randn(3, 4))
    reader.collector.read(AfterUpdate(None, reader.roster, Depth.FULL, Depth.LIGHT))
    x = torch.randn(3, 4)
    agrees(reader(lambda: model(x)), "Linear", model(x))


@pytest.mark.filterwarnings("ignore")  # torch deprecates scripting, and warns of itself
def test_copies_and_files_made_in_the_window_know_nothing():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    reader = Reader(model)
    reader.open()
    clone = copy.deepcopy(model)
    thawed = pickle.loads(pickle.dumps(model))
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    scripted = torch.jit.script(model)
    x = torch.randn(3, 4)
    for each in (clone, thawed, loaded, scripted):
        assert torch.equal(each(x), model(x))
    assert b"holter" not in buffer.getvalue()
    for each in (*clone.modules(), *thawed.modules(), *loaded.modules()):
        assert not each._forward_hooks
    found = reader.close()
    agrees(found, "0", model[0](x))
    assert list(found[ACTIVATION_MEAN]) == ["0", "1"]


def test_no_graph_and_no_output_is_kept():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    reader = Reader(model)
    reader.open()
    x = torch.randn(3, 4, requires_grad=True)  # held by the graph alone, once it is let go
    out = model(x)
    gone = [weakref.ref(x), weakref.ref(out)]
    del x, out
    gc.collect()
    assert [each() for each in gone] == [None, None]
    for slot in reader.collector._slots.values():
        for each in itertools.chain(*(row[:4] for row in slot.rows)):
            assert each.untyped_storage().nbytes() <= 8
            assert not each.requires_grad
    reader.close()
    assert all(not each.values.requires_grad for each in reader.readings)


def test_a_model_that_goes_may_go():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    reader = Reader(model)
    reader.open()
    model(torch.randn(3, 4))
    gone = weakref.ref(model)
    reader.roster = None
    del model
    gc.collect()
    assert gone() is None
    reader.collector.read(Closing())


def test_modules_that_join_and_leave():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    reader = Reader(model)
    x = torch.randn(3, 4)
    reader(lambda: model(x))
    owners = reader.readings[0].owners
    reader(lambda: model(x))
    assert reader.readings[0].owners is owners
    model[1] = nn.Tanh()
    model.append(nn.Linear(4, 2))
    found = reader(lambda: model(x))
    assert list(found[ACTIVATION_MEAN]) == ["0", "1", "2"]
    assert list(found[ACTIVATION_SATURATED_FRACTION]) == ["1"]


def test_an_error_never_reaches_training(monkeypatch):
    model = nn.Linear(4, 4)
    reader = Reader(model)
    reader.open()
    monkeypatch.setattr(torch, "aminmax", None)
    model(torch.randn(3, 4))
    monkeypatch.undo()
    assert not is_listening()
    with pytest.raises(TypeError):
        reader.close()


# What is declined.


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.ReLU()

    def forward(self, x):
        return self.b(self.a(x))


def compiled():
    return torch.compile(Net(), backend="eager")


def compiled_in_place():
    model = Net()
    model.compile(backend="eager")
    return model


def compiled_in_parts():
    return nn.Sequential(nn.Linear(4, 4), torch.compile(Net(), backend="eager"))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # by dynamo itself
@pytest.mark.parametrize("make", [compiled, compiled_in_place, compiled_in_parts])
def test_compiled_models_are_declined(make):
    model = make()
    reader = Reader(model, nn.Linear(2, 2))
    assert reader(lambda: model(torch.randn(2, 4)).sum().backward()) == {}
    (sentence,) = reader.collector.declined
    assert sentence.startswith("activations are not recorded: ")
    assert sentence.endswith("is compiled")
    reader(lambda: model(torch.randn(2, 4)))
    assert len(reader.collector.declined) == 1


@pytest.mark.filterwarnings("ignore")  # torch deprecates scripting, and warns of itself
def test_scripted_parts_are_declined():
    model = nn.Sequential(nn.Linear(4, 4), torch.jit.script(nn.ReLU()))
    reader = Reader(model)
    found = reader(lambda: model(torch.randn(2, 4)))
    assert set(found[ACTIVATION_MEAN]) == {"0"}
    assert reader.collector.declined == ["activations of 1 are not recorded: it is scripted"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, for its own scripts
def test_a_compiled_step_stays_one_graph_and_is_given_up():
    from torch._dynamo import reset
    from torch._dynamo.testing import CompileCounter

    reset()
    model, counter = Net(), CompileCounter()
    step = torch.compile(lambda x: model(x).sum(), backend=counter, fullgraph=True)
    reader = Reader(model)
    for _ in range(_SILENT + 3):
        assert reader(lambda: step(torch.ones(2, 4)).backward()) == {}
        step(torch.ones(2, 4))
    assert counter.frame_count <= 2
    (sentence,) = reader.collector.declined
    assert "no module was seen at work" in sentence
    reader.open()
    assert not is_listening()
    reset()


def test_dynamo_is_not_imported_for_it():
    code = (
        "import sys, torch; from torch import nn;"
        "from holter.watching.collectors.activations import *;"
        "from holter.watching.collectors.calls import is_compiled;"
        "assert not is_compiled(nn.ReLU());"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# In a real training.


def test_a_watched_training(tmp_path):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
    with torch.no_grad():
        model[0].bias[:2] = -1e3
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expected = {name: [] for name in "0123"}
    with watching(tmp_path / "run", model, optimizer, budget=None):
        for _ in range(6):
            x = torch.randn(16, 4)
            out = x
            for name, each in model.named_children():
                out = each(out)
                expected[name].append(oracle([out]))
            optimizer.zero_grad()
            out.mean().backward()
            optimizer.step()
            with torch.no_grad():
                model(1000 * x)
    run = Run.load(tmp_path / "run")
    for name, steps in expected.items():
        for signal, truth in zip(BASIC, zip(*steps, strict=True), strict=True):
            assert values(run, signal, name) == pytest.approx(list(truth), rel=1e-4, abs=1e-6)
    assert run[ACTIVATION_DEAD_FRACTION]["1"].steps.tolist() == [3]
    assert values(run, ACTIVATION_DEAD_FRACTION, "1")[0] >= 2 / 8
    assert values(run, ACTIVATION_SATURATED_FRACTION, "3") == [0.0] * 6


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_on_a_gpu_the_same_numbers_and_nothing_is_waited_for():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 4, 3), nn.Tanh()
    )
    inputs = [torch.randn(5, 3, 9, 9) for _ in range(2)]
    reader, there = Reader(model), copy.deepcopy(model).cuda()
    expected = [reader(lambda: [model(each) for each in inputs]) for _ in range(STEPS)]
    on_gpu = Reader(there)
    moved = [each.cuda() for each in inputs]
    for step in expected:
        on_gpu.open()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for each in moved:
                there(each)
            on_gpu.readings = list(
                on_gpu.collector.read(BackwardBegins((), opens_step=True, roster=on_gpu.roster))
            )
        finally:
            torch.cuda.set_sync_debug_mode("default")
        found = on_gpu.found()
        assert found.keys() == step.keys()
        for signal, owners in step.items():
            assert found[signal] == pytest.approx(owners, rel=1e-2, abs=1e-3), signal


@pytest.mark.cuda
def test_a_captured_graph_holds_none_of_it():
    model, x = nn.Linear(4, 4).cuda(), torch.randn(3, 4, device="cuda")
    model(x)
    reader, graph = Reader(model), torch.cuda.CUDAGraph()
    reader.open()
    with torch.cuda.graph(graph):
        model(x)
    assert reader.close() == {}
    assert reader.collector._error is None
