"""Captures: whole or not there, read without executing anything, and what makes one."""

import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter.record.errors import HolterError
from holter.record.events import SkippedStep
from holter.record.signals import LOSS, LOSS_COEFFICIENT_BALANCE, LOSS_COEFFICIENT_SIZE
from holter.watching.blackbox import box as boxing
from holter.watching.blackbox.alarms import Alarm, Alarms, Spikes
from holter.watching.blackbox.box import NonfiniteError
from holter.watching.blackbox.capture import Capture, captures_in, load_capture, write_capture
from holter.watching.blackbox.ring import Ring, tensors_of
from holter.watching.blackbox.shadow import Shadow, Snapshot

BAD = 1500  # the sample that breaks the training


def train(path: Path, *, bad: float = 1e8, epochs: int = 2, **options: object) -> nn.Module:
    """A training whose loss is not finite once it meets one sample."""
    torch.manual_seed(0)
    x = torch.randn(2048, 8)
    y = (x[:, 0] > 0).float()
    x[BAD] = bad
    loader = DataLoader(TensorDataset(x, y), 32, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with holter.watch(model, optimizer, path, quiet=True, **options) as w:
        for _ in range(epochs):
            for a, b in loader:
                p = torch.sigmoid(model(a)).squeeze(1)
                loss = -(b * torch.log(p) + (1 - b) * torch.log(1 - p)).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        if bad == 0:
            w.capture()
    return model


def only(path: Path) -> Capture:
    (found,) = captures_in(path)
    return load_capture(found)


def test_a_nan_leaves_the_window_before_it(tmp_path: Path) -> None:
    train(tmp_path / "run")
    capture = only(tmp_path / "run")
    assert capture.alarm.kind == "nonfinite"
    failing = next(step for step in capture.steps if step.step == capture.alarm.step)
    (fetch,) = failing.fetches
    assert fetch.whole
    assert fetch.batch[0].max() == 1e8
    assert [step.step for step in capture.steps] == list(
        range(capture.steps[0].step, capture.steps[-1].step + 1)
    )
    assert capture.steps[0].step <= capture.alarm.step - 16
    assert all(each.isfinite().all() for each in capture.state.values())
    assert failing.rates == ((1e-3,),)
    assert torch.__version__.startswith(capture.about["versions"]["torch"])


def test_a_healthy_training_leaves_none(tmp_path: Path) -> None:
    train(tmp_path / "run", bad=0.5)
    assert captures_in(tmp_path / "run") == ()


def test_one_may_be_asked_for(tmp_path: Path) -> None:
    train(tmp_path / "run", bad=0)
    assert only(tmp_path / "run").alarm.kind == "asked"


def test_an_exception_leaves_one(tmp_path: Path) -> None:
    with pytest.raises(NonfiniteError, match="have not been updated"):
        train(tmp_path / "run", on_nonfinite="raise")
    assert only(tmp_path / "run").alarm.kind == "nonfinite"


def test_a_bad_step_can_be_skipped(tmp_path: Path) -> None:
    model = train(tmp_path / "run", on_nonfinite="skip")
    assert all(each.isfinite().all() for each in model.parameters())
    skipped = holter.Run.load(tmp_path / "run").events_of(SkippedStep)
    assert [event for event in skipped if event.what.by == "holter"]


@pytest.mark.parametrize(("how", "raised"), [("stop", SystemExit), ("raise", NonfiniteError)])
def test_a_training_can_be_stopped_and_the_reason_is_found(
    how: str, raised: type[BaseException], tmp_path: Path
) -> None:
    with pytest.raises(raised):
        train(tmp_path / "run", on_nonfinite=how)
    run = holter.Run.load(tmp_path / "run")
    assert run.steps == only(tmp_path / "run").alarm.step + 1
    assert {"nonfinite-gradient", "nonfinite-loss"} & {f.rule for f in holter.check(run).findings}


def test_weights_are_the_same_with_and_without(tmp_path: Path) -> None:
    with_it = train(tmp_path / "a", bad=0.5)
    without = train(tmp_path / "b", bad=0.5, black_box=False)
    for ours, theirs in zip(with_it.parameters(), without.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_wrong_options_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="on_nonfinite"):
        train(tmp_path / "run", on_nonfinite="explode")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    ring = Ring(steps=4, limit=1 << 20, cuda=False)
    ring.begin(3)
    ring.fetched("loader 0", {"x": torch.ones(2, 3), "n": 4, "parts": [torch.zeros(1), None]})
    tied = torch.ones(4)
    snapshot = Snapshot(3, {"a": tied, "b": tied}, {"": {"groups": [{"lr": 0.1}]}})
    folder = tmp_path / "captures" / "step-3"
    write_capture(folder, Alarm("asked", 3, "why"), snapshot, list(ring.entries), {"torch": "2"})
    return folder


def test_what_was_written_is_read(capture: Path) -> None:
    read = load_capture(capture)
    (fetch,) = read.steps[0].fetches
    assert fetch.batch["n"] == 4
    assert torch.equal(fetch.batch["x"], torch.ones(2, 3))
    assert fetch.batch["parts"][1] is None
    assert set(read.state) == {"a", "b"}
    assert read.plain == {"": {"groups": [{"lr": 0.1}]}}
    assert torch.equal(read.steps[0].random, fetch.random)
    assert oct((capture / "state.safetensors").stat().st_mode & 0o777) == "0o644"


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch executed",)


@pytest.mark.parametrize("name", ["state.safetensors", "steps.safetensors", "capture.json"])
@pytest.mark.parametrize("content", [pickle.dumps(Hostile()), b"", b"{}", b"\xff" * 64, b"[1, 2]"])
def test_a_hostile_file_gives_one_sentence(
    capture: Path, name: str, content: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (capture / name).write_bytes(content)
    with pytest.raises(HolterError) as error:
        load_capture(capture)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "executed").exists()


def test_a_missing_file_and_a_newer_format_are_told(capture: Path) -> None:
    about = json.loads((capture / "capture.json").read_text())
    (capture / "capture.json").write_text(json.dumps({**about, "format": 99}))
    with pytest.raises(HolterError, match="no capture of format 2"):
        load_capture(capture)
    (capture / "steps.safetensors").unlink()
    (capture / "capture.json").write_text(json.dumps(about))
    with pytest.raises(HolterError, match=r"steps.safetensors is missing|not a whole capture"):
        load_capture(capture)


WRITES = """
import sys, torch
from pathlib import Path
from holter.watching.blackbox.alarms import Alarm
from holter.watching.blackbox.capture import write_capture
from holter.watching.blackbox.ring import Ring
from holter.watching.blackbox.shadow import Snapshot
ring = Ring(steps=4, limit=1 << 40, cuda=False)
ring.begin(0)
ring.fetched("loader 0", torch.ones(2_000_000))
state = {str(n): torch.ones(1_000_000) for n in range(8)}
number = 0
print("begun", flush=True)
while True:
    folder = Path(sys.argv[1]) / "captures" / f"step-{number:08d}"
    write_capture(folder, Alarm("asked", 0, ""), Snapshot(0, state), list(ring.entries), {})
    number += 1
"""


@pytest.mark.slow
def test_killed_while_writing_it_is_whole_or_not_there(tmp_path: Path) -> None:
    for number in range(3):
        folder = tmp_path / str(number)
        process = subprocess.Popen(
            [sys.executable, "-c", WRITES, str(folder)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        while not captures_in(folder):
            time.sleep(0.01)
        time.sleep(0.05 + 0.07 * number)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = captures_in(folder)
        assert found
        for each in found:
            assert len(load_capture(each).state) == 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    train(folder / "run")
    (found,) = captures_in(folder / "run")
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_capture_is_one_sentence(seed: int, whole: Path, tmp_path: Path) -> None:
    """Bits that flip, bytes that are lost, added or doubled, files that change places."""
    chance = random.Random(seed)
    names = sorted(path.name for path in whole.iterdir())
    for number in range(150):
        damaged = shutil.copytree(whole, tmp_path / str(number))
        path = damaged / chance.choice(names)
        content = bytearray(path.read_bytes())
        place = chance.randrange(len(content))
        match chance.randrange(5):
            case 0:
                content[place] ^= 1 << chance.randrange(8)
            case 1:
                del content[place:]
            case 2:
                content[place:place] = chance.randbytes(chance.randrange(1, 9))
            case 3:
                content += content[place:]
            case _:
                content = bytearray((damaged / chance.choice(names)).read_bytes())
        if bytes(content) == path.read_bytes():
            continue
        path.write_bytes(content)
        with pytest.raises(HolterError, match="capture"):
            load_capture(damaged)
        shutil.rmtree(damaged)


def test_the_ring_is_bounded_by_bytes_and_steps() -> None:
    ring = Ring(steps=6, limit=10 * 400, cuda=False)
    for step in range(50):
        ring.begin(step)
        ring.fetched("loader 0", [torch.zeros(100)])
    assert [entry.step for entry in ring.entries] == list(range(44, 50))
    tight = Ring(steps=100, limit=3 * 400, cuda=False)
    for step in range(50):
        tight.begin(step)
        tight.fetched("loader 0", torch.zeros(100))
    assert len(tight.entries) == 3


def test_batches_from_before_the_snapshots_are_given_back(tmp_path: Path) -> None:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches: list[weakref.ref[torch.Tensor]] = []

    def kept() -> float:
        return sum(batch() is not None for batch in batches) / len(batches)

    with holter.watch(model, optimizer, tmp_path / "run", quiet=True):
        for _ in range(20):  # snapshots are spaced by their own cost: the next one may take a while
            for batch in DataLoader(torch.randn(4000, 8), batch_size=8):
                batches.append(weakref.ref(batch))
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
            if kept() < 1 / 3:
                break
        assert kept() < 1 / 3


def test_a_batch_that_was_written_into_is_not_whole(tmp_path: Path) -> None:
    ring = Ring(steps=4, limit=1 << 20, cuda=False)
    ring.begin(0)
    batch = torch.ones(4)
    ring.fetched("loader 0", (batch,))
    batch.mul_(2)
    write_capture(tmp_path / "c", Alarm("asked", 0, ""), Snapshot(0, {}), list(ring.entries), {})
    assert not load_capture(tmp_path / "c").steps[0].fetches[0].whole
    assert len(tensors_of({"a": [batch, (batch,)], "b": 3})) == 2


def test_a_shadow_keeps_two_states_and_holds_nobody() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    shadow = Shadow({"": model}, {"": optimizer})
    before = model.weight.detach().clone()
    shadow.take(0)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    shadow.take(1)
    first, second = shadow.newest_before(0), shadow.newest_before(7)
    assert first is not None and second is not None
    assert (first.step, second.step) == (0, 1)
    assert torch.equal(first.tensors["model//weight"], before)
    assert torch.equal(second.tensors["model//weight"], model.weight)
    assert "optimizer//0/momentum_buffer" in second.tensors
    del optimizer
    shadow.take(2)
    assert not [name for name in shadow.newest_before(9).tensors if "optimizer" in name]


def test_a_large_state_is_kept_once_and_takes_twelve_bytes_a_parameter(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(boxing, "_SMALL", 1000)
    model = nn.Linear(300, 200)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    count = sum(parameter.numel() for parameter in model.parameters())
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True) as watched:
        for _ in range(40):
            model(torch.ones(1, 300)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        shadow = watched._loop.black_box._shadow
        (room,) = shadow._rooms
        held = sum(tensor.nbytes for tensor in room.tensors.values())
        assert 0.9 < held / (12 * count) < 1.02
        assert room._block.nbytes < 1.02 * 12 * count
        snapshot = shadow.newest_before(100)
        assert snapshot is not None and snapshot.step >= 16
        assert torch.equal(
            snapshot.tensors["optimizer//0/step"], torch.tensor(float(snapshot.step))
        )
        assert watched.capture() is not None
    assert not holter.Run.load(tmp_path / "run").meta.notes


def test_a_state_that_does_not_fit_turns_the_black_box_off_in_one_sentence(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(boxing, "_SMALL", 1000)
    model = nn.Linear(300, 200).double()  # 24 bytes a parameter
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True) as watched:
        model(torch.ones(1, 300).double()).sum().backward()
        optimizer.step()
        assert watched.capture() is None
    (note,) = holter.Run.load(tmp_path / "run").meta.notes
    assert note.startswith("The black box is off")


def test_spikes() -> None:
    noisy = [2.0 + 0.01 * ((7 * n) % 5) for n in range(100)]

    def told(losses: list[float]) -> list[tuple[int, float]]:
        spikes = Spikes()
        return [s for n, loss in enumerate(losses) if (s := spikes.add(n, loss)) is not None]

    assert told(noisy) == []
    assert told([*noisy, 9.0, *noisy]) == []  # it comes back
    assert told([*noisy, *[9.0] * 60]) == [(100, 9.0)]
    assert told([*noisy, 5.0, *[3.0] * 60]) == [(100, 5.0)]
    assert told([2.0 * 0.99**n for n in range(300)]) == []


def alarms_of(losses, *, stages=(), **constants):
    """The steps of all alarms that losses raise; `stages` begin at steps."""
    alarms, told = Alarms(), []
    for step, loss in enumerate(losses):
        for start, stage in stages:
            if start == step:
                alarms.begins(step, stage)
        signals = {LOSS: [loss]}
        if constants:
            signals[LOSS_COEFFICIENT_BALANCE] = [constants["balance"]]
            signals[LOSS_COEFFICIENT_SIZE] = [constants["size"][step]]
        alarm = alarms.see(step, signals)
        told += [] if alarm is None else [alarm.step]
    return told


HIGHER = [2.0 + 0.01 * ((7 * n) % 5) for n in range(100)] + [9.0] * 60


def test_a_stage_has_a_level_of_its_own() -> None:
    assert alarms_of(HIGHER) == [100]
    assert alarms_of(HIGHER, stages=[(0, "head"), (100, "all")]) == []
    assert alarms_of([*HIGHER, *[30.0] * 60], stages=[(0, "head"), (100, "all")]) == [160]
    turns = [(step, step % 2) for step in range(200)]  # a loss for each of two optimizers
    assert alarms_of([2.0, 9.0] * 100, stages=turns) == []


def test_a_loss_that_its_coefficients_rule_may_rise() -> None:
    same = [1.0] * len(HIGHER)
    assert alarms_of(HIGHER, balance=1.0, size=same) == [100]
    assert alarms_of(HIGHER, balance=0.1, size=same) == []
    assert alarms_of(HIGHER, balance=1.0, size=HIGHER) == []
