"""Updates and weights against copies made by hand."""

import math

import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import (
    UPDATE_RATIO,
    UPDATE_UNCHANGED_FRACTION,
    WEIGHT_ABSMAX,
    WEIGHT_NORM,
    WEIGHT_ROW_COHERENCE,
    WEIGHT_TOTAL_NORM,
    WEIGHT_TWIN_FRACTION,
)
from watching.collectors.trainings import mlp, values, watching


def test_against_copies(tmp_path):
    torch.manual_seed(1)
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before, after = [], []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(15):
            optimizer.zero_grad()
            model(torch.randn(8, 6)).pow(2).sum().backward()
            before.append([each.detach().double() for each in model.parameters()])
            optimizer.step()
            after.append([each.detach().double() for each in model.parameters()])
    run = Run.load(tmp_path / "run")
    sampled = [*range(15)]
    for place, (name, _) in enumerate(model.named_parameters()):
        series = run[UPDATE_RATIO][name]
        assert series.steps.tolist() == sampled
        unchanged = run[UPDATE_UNCHANGED_FRACTION][name].values
        for step, ratio, share in zip(sampled, series.values, unchanged, strict=True):
            old, new = before[step][place], after[step][place]
            oracle = float((new - old).norm()) / float(old.norm()) if old.any() else math.inf
            assert ratio == pytest.approx(oracle, rel=1e-4)
            assert share == pytest.approx(float((new == old).double().mean()))
        assert values(run, WEIGHT_NORM, name) == pytest.approx(
            [float(each[place].norm()) for each in after], rel=1e-5
        )
        assert values(run, WEIGHT_ABSMAX, name) == pytest.approx(
            [float(each[place].abs().max()) for each in after], rel=1e-6
        )
    assert values(run, WEIGHT_TOTAL_NORM) == pytest.approx(
        [math.sqrt(sum(float(p.norm()) ** 2 for p in each)) for each in after], rel=1e-5
    )


def test_updates_lost_in_bfloat16(tmp_path):
    model = nn.Linear(100, 1, bias=False).to(torch.bfloat16)
    with torch.no_grad():
        model.weight.fill_(1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.ones(1, 100, dtype=torch.bfloat16)
    batch[0, :25] = 1000.0
    with watching(tmp_path / "run", model, optimizer):
        model(batch).sum().backward()
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, UPDATE_UNCHANGED_FRACTION, "weight") == [0.75]
    assert values(run, UPDATE_RATIO, "weight") == [pytest.approx(0.1 * 5 / 10, rel=2e-2)]


def test_a_learning_rate_of_zero_changes_nothing(tmp_path):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(tmp_path / "run", model, optimizer):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, UPDATE_RATIO, "weight") == [0]
    assert values(run, UPDATE_UNCHANGED_FRACTION, "weight") == [1]


def test_weights_that_become_nan(tmp_path):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        model(torch.tensor([[math.nan, 1.0]])).sum().backward()
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert math.isnan(values(run, WEIGHT_NORM, "weight")[0])
    assert math.isnan(values(run, WEIGHT_TOTAL_NORM)[0])


def test_a_step_that_raises_leaves_no_stale_copy(tmp_path):
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def closure():
        raise RuntimeError("in the closure")

    with watching(tmp_path / "run", model, optimizer):
        model(torch.ones(1, 2)).sum().backward()
        with pytest.raises(RuntimeError, match="in the closure"):
            optimizer.step(closure)
        with torch.no_grad():
            model.weight.fill_(1.0)
        optimizer.step()
    run = Run.load(tmp_path / "run")
    assert values(run, UPDATE_RATIO, "weight") == [pytest.approx(0.5)]


def twins(path, model, steps=6, signal=WEIGHT_TWIN_FRACTION):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(path, model, optimizer):
        for _ in range(steps):
            for each in model.parameters():
                each.grad = torch.zeros_like(each)
            optimizer.step()
    table = Run.load(path)[signal]
    return {name: series for name, series in table.items() if len(series)}


def test_rows_that_equal_the_first(tmp_path):
    model = nn.Sequential(
        nn.Linear(3, 5), nn.Linear(5, 4), nn.Conv2d(2, 3, 3), nn.Linear(1, 600), nn.Linear(20, 9)
    )
    nn.init.constant_(model[0].weight, 0.5)
    with torch.no_grad():
        model[1].weight[2] = model[1].weight[0]
        model[4].weight[:, :10] = 0.5  # equal in part only
    table = twins(tmp_path / "run", model)
    assert table["0.weight"].values.tolist() == [1, 1]
    assert table["0.weight"].steps.tolist() == [0, 4]  # it is enough to look now and then
    assert table["1.weight"].values.tolist() == pytest.approx([1 / 3] * 2)
    assert table["2.weight"].values.tolist() == [0, 0]
    assert table["4.weight"].values.tolist() == [0, 0]
    assert set(table) == {"0.weight", "1.weight", "2.weight", "4.weight"}  # no vectors


def test_embeddings_and_norms_have_no_units_that_ought_to_differ(tmp_path):
    model = nn.Sequential(nn.Embedding(9, 4), nn.LayerNorm((3, 4)), nn.Linear(4, 2))
    nn.init.zeros_(model[0].weight)
    assert set(twins(tmp_path / "run", model)) == {"2.weight"}


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN, nn.GRUCell])
def test_the_units_of_a_recurrent_gate_are_compared(tmp_path, layer):
    model = layer(3, 5)
    for name, weight in model.named_parameters():
        if "weight" in name:
            for number, gate in enumerate(weight.detach().split(5)):
                gate.fill_(0.1 * number)  # as if the gates had moved apart
    table = twins(tmp_path / "run", model)
    assert all(series.values.tolist() == [1, 1] for series in table.values())
    assert len(table) == 2


def test_many_rows_are_read_in_part(tmp_path):
    model = nn.Linear(4, 5000)
    nn.init.ones_(model.weight)
    assert twins(tmp_path / "run", model)["weight"].values.tolist() == [1, 1]


def coherence(rows):
    flat = rows.detach().flatten(1).double()
    return float(flat.mean(0).square().sum() / flat.square().sum(1).mean())


def test_the_coherence_of_rows(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(6, 5),
        nn.Linear(5, 40),
        nn.Conv2d(2, 9, 3),
        nn.Linear(6, 5, dtype=torch.float64),
        nn.Embedding(9, 4),
        nn.Linear(9, 3),
    )
    with torch.no_grad():
        model[0].weight.fill_(0.1).add_(torch.randn(5, 6), alpha=1e-4)
        model[3].weight.zero_()
    expected = {f"{n}.weight": coherence(model[n].weight) for n in range(3)}
    table = twins(tmp_path / "run", model, signal=WEIGHT_ROW_COHERENCE)
    assert set(table) == {*expected, "3.weight"}  # no embedding, nothing of three rows
    for name, value in expected.items():
        assert table[name].steps.tolist() == [0, 4]
        assert table[name].values.tolist() == pytest.approx([value] * 2, rel=1e-5)
    assert table["0.weight"].values[0] > 0.999
    assert table["1.weight"].values[0] < 0.1
    assert math.isnan(table["3.weight"].values[0])


def test_the_coherence_is_that_of_the_initial_weights(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(6, 5)
    nn.init.constant_(model.weight, 0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=10.0)
    with watching(tmp_path / "run", model, optimizer):
        model(torch.randn(8, 6)).pow(3).sum().backward()
        model.weight.grad += torch.randn(5, 6)
        optimizer.step()
    assert values(Run.load(tmp_path / "run"), WEIGHT_ROW_COHERENCE, "weight") == [pytest.approx(1)]
    assert coherence(model.weight) < 0.9


def test_the_coherence_of_large_weights_is_estimated(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(2000, 1500)
    torch.nn.init.normal_(model.weight, mean=0.05, std=0.05)
    table = twins(tmp_path / "run", model, signal=WEIGHT_ROW_COHERENCE)
    assert table["weight"].values.tolist() == pytest.approx([coherence(model.weight)] * 2, rel=0.02)


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.GRUCell])
def test_the_coherence_of_the_units_of_a_gate(tmp_path, layer):
    model = layer(3, 5)
    for name, weight in model.named_parameters():
        if "weight" in name:
            for number, gate in enumerate(weight.detach().split(5)):
                gate.fill_(0.1 * (-1) ** number)
    table = twins(tmp_path / "run", model, signal=WEIGHT_ROW_COHERENCE)
    assert [series.values.tolist() for series in table.values()] == [pytest.approx([1, 1])] * 2


def test_the_projections_of_an_attention_are_compared_apart(tmp_path):
    model = nn.MultiheadAttention(8, 2)
    for number, part in enumerate(model.in_proj_weight.detach().split(8)):
        part.fill_(0.1 * (-1) ** number)
    run = twins(tmp_path / "run", model, signal=WEIGHT_ROW_COHERENCE)
    assert run["in_proj_weight"].values.tolist() == pytest.approx([1, 1])
