"""Watching on a GPU: nothing waits for it, and nothing changes."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import holter
from holter.record.signals import (
    ACTIVATION_ABSMAX,
    ACTIVATION_STD,
    ADAM_SURPRISE,
    ADAM_TINY_FRACTION,
    AMP_SKIPPED,
    GRAD_NORM,
    GRAD_TOTAL_NORM,
    LOSS,
    UPDATE_RATIO,
    UPDATE_UNCHANGED_FRACTION,
    WEIGHT_NORM,
)
from holter.watching.budget import Budget
from holter.watching.collectors.moments import Depth

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore:Synchronization debug mode"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]


def model_and_batch():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10)
    ).cuda()
    return model, torch.randn(32, 64, device="cuda"), torch.randint(10, (32,), device="cuda")


def make_step(model, optimizer, inputs, labels, scaler=None):
    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.float16 if scaler else torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        if scaler is None:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        return loss

    return step


@pytest.mark.parametrize("kind", [{"foreach": True}, {"fused": True}])
def test_a_watched_step_never_waits_for_the_device(tmp_path: Path, kind) -> None:
    model, inputs, labels = model_and_batch()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **kind)
    step = make_step(model, optimizer, inputs, labels)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, budget=None) as w:
        for _ in range(3):
            step()  # kernels are compiled, tables are made
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(20):
                step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert w.steps >= 20
    run = holter.Run.load(tmp_path / "run")
    assert run.meta.notes == ()
    assert len(run[LOSS][""]) == len(run[GRAD_TOTAL_NORM][""]) == 23
    assert np.isfinite(run[LOSS][""].values).all()


def test_readings_are_those_of_the_training(tmp_path: Path) -> None:
    model, inputs, labels = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, norms, weights = [], [], []
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, budget=None):
        for _ in range(15):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            losses.append(loss.item())
            norms.append([p.grad.double().norm().item() for p in model.parameters()])
            optimizer.step()
            weights.append([p.double().norm().item() for p in model.parameters()])
    run = holter.Run.load(tmp_path / "run")
    np.testing.assert_allclose(run[LOSS][""].values, losses, rtol=1e-5)
    for index, (name, _) in enumerate(model.named_parameters()):
        np.testing.assert_allclose(
            run[GRAD_NORM][name].values, [row[index] for row in norms], rtol=1e-4
        )
        np.testing.assert_allclose(
            run[WEIGHT_NORM][name].values, [row[index] for row in weights], rtol=1e-4
        )
    assert (run[UPDATE_UNCHANGED_FRACTION]["4.weight"].values < 0.5).all()


@pytest.mark.parametrize("scaled", [False, True])
def test_weights_are_bit_identical(tmp_path: Path, scaled, monkeypatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        ends = []
        for watched in (False, True):
            model, inputs, labels = model_and_batch()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            scaler = torch.amp.GradScaler("cuda", init_scale=2.0**40) if scaled else None
            step = make_step(model, optimizer, inputs, labels, scaler)
            if watched:
                with holter.watch(model, optimizer, tmp_path / "run", quiet=True, budget=None):
                    for _ in range(30):
                        step()
            else:
                for _ in range(30):
                    step()
            ends.append([copy.deepcopy(each.data) for each in model.state_dict().values()])
        assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
    finally:
        torch.use_deterministic_algorithms(False)
    run = holter.Run.load(tmp_path / "run")
    assert run.meta.notes == ()
    assert len(run[LOSS][""]) == 30
    if scaled:
        assert run[AMP_SKIPPED][""].values[0] == 1


@pytest.mark.filterwarnings("ignore")  # torch.compile has warnings of its own
def test_a_compiled_step_and_a_captured_graph_are_survived(tmp_path: Path) -> None:
    model, inputs, labels = model_and_batch()
    compiled = torch.compile(model, mode="reduce-overhead")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = make_step(compiled, optimizer, inputs, labels)
    with holter.watch(compiled, optimizer, tmp_path / "run", quiet=True, budget=None):
        losses = [step().item() for _ in range(12)]
    run = holter.Run.load(tmp_path / "run")
    np.testing.assert_allclose(run[LOSS][""].values, losses, rtol=1e-4)
    assert len(run[GRAD_TOTAL_NORM][""]) == 12


def test_a_step_captured_in_a_graph_is_left_alone(tmp_path: Path) -> None:
    model, inputs, labels = model_and_batch()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
    step = make_step(model, optimizer, inputs, labels)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True) as watch:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = step()
        losses = []
        for _ in range(5):
            graph.replay()
            losses.append(loss.item())
    assert watch.steps == 5
    assert losses[-1] < losses[0]
    assert "CUDA graph" in " ".join(holter.Run.load(tmp_path / "run").meta.notes)


def test_light_steps_between_deep_ones_keep_their_gradients(tmp_path: Path, monkeypatch) -> None:
    """Readings of a deep step arrive when later steps have left theirs."""
    monkeypatch.setattr(Budget, "depth", lambda _, step: Depth.LIGHT if step % 3 else Depth.FULL)
    monkeypatch.setattr(Budget, "is_dense", lambda *_: True)
    model, inputs, labels = model_and_batch()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = make_step(model, optimizer, inputs, labels)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True):
        for _ in range(60):
            step()
    run = holter.Run.load(tmp_path / "run")
    assert not run.meta.notes
    (norms,) = run[GRAD_TOTAL_NORM].values()
    assert norms.steps.tolist() == list(range(60))
    assert np.isfinite(norms.values).all()


def test_what_adam_keeps_is_read_as_on_a_cpu(tmp_path: Path) -> None:
    read = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).to(device)
        x = torch.randn(8, 16, generator=torch.Generator().manual_seed(1)).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-3)
        with holter.watch(model, optimizer, tmp_path / device, quiet=True):
            for _ in range(6):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        run = holter.Run.load(tmp_path / device)
        read[device] = {
            signal: {name: series.values for name, series in run[signal].items()}
            for signal in (ADAM_SURPRISE, ADAM_TINY_FRACTION, ACTIVATION_STD, UPDATE_RATIO)
        }
    for signal, owners in read["cpu"].items():
        for name, values in owners.items():
            assert read["cuda"][signal][name] == pytest.approx(values, rel=1e-2, abs=1e-4), signal


def test_outputs_that_are_changed_in_place_are_read_before(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x):
            return self.last(self.first(x).clamp_(min=5.0))

    model = Net().cuda()
    nn.init.zeros_(model.first.weight)
    nn.init.zeros_(model.first.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(4, 8, device="cuda")).sum().backward()
            optimizer.step()
    absmax = holter.Run.load(tmp_path / "run")[ACTIVATION_ABSMAX]
    assert absmax["first"].steps.tolist() == [1, 2, 3, 4]
    assert absmax["first"].values.tolist() == [0.0] * 4
