import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hammer import OWNERS, loss, norms

from holter.record import Run, Writer, follow, verify
from holter.record.events import ExceptionRaised, Resumed
from holter.record.signals import GRAD_NORM, LOSS

HERE = Path(__file__).parent
ONE = ("",)
BIG = 1 << 30


def start_hammer(path, *, segment_bytes=BIG, stream_bytes=BIG, steps=10**9):
    command = [sys.executable, HERE / "hammer.py", path, segment_bytes, stream_bytes, steps]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)


def run_child(code: str, *args: object) -> dict:
    """Run `code` in a process of its own; what it printed, as JSON."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_whole(run: Run, *, acknowledged: int, folded: bool = False) -> None:
    series = run[LOSS][""]
    if folded:  # the oldest are thinned
        assert (np.diff(series.steps) > 0).all()
        assert (series.first, series.last >= acknowledged) == (0, True)
    else:
        assert series.steps.tolist() == list(range(len(series)))
        assert len(series) > acknowledged
    assert np.array_equal(series.values, series.steps * np.float32(0.5))
    table = run[GRAD_NORM]
    assert tuple(table) == OWNERS
    steps = table["layer.0.weight"].steps
    assert steps[-1] >= acknowledged
    if folded:
        return
    assert steps.tolist() == list(range(len(steps)))
    rows = table.rows(max(0, acknowledged - 100), acknowledged)
    assert rows.present.all()
    for step, values in zip(rows.steps, rows.values, strict=True):
        assert np.array_equal(values, norms(int(step)))


@pytest.mark.parametrize(
    ("kills", "sizes"),
    [
        (8, {}),
        (8, {"segment_bytes": 4096 + 600}),  # a segment holds a few records: kills hit the roll
        (8, {"segment_bytes": 4096 * 3, "stream_bytes": 4096 * 12}),  # and here the fold
    ],
    ids=["appending", "rolling", "folding"],
)
def test_nothing_acknowledged_is_lost_in_a_kill(tmp_path, kills, sizes):
    rng = random.Random(0)
    for kill in range(kills):
        path = tmp_path / str(kill)
        child = start_hammer(path, **sizes)
        first = child.stdout.read(8)  # it has begun
        time.sleep(rng.uniform(0, 0.15))
        child.kill()
        acknowledged = first + child.stdout.read()
        child.wait()
        child.stdout.close()
        last = len(acknowledged) // 8 - 1
        run = Run.load(path)
        check_whole(run, acknowledged=last, folded="stream_bytes" in sizes)
        assert verify(path) > 0
        assert len(run.events) >= last // 50 + 1
        assert run.meta.steps >= last // 50 * 50


def test_a_run_survives_kill_after_kill(tmp_path):
    """Each life begins again at step 0, as from a checkpoint, and leaves whole records behind."""
    for _ in range(4):
        child = start_hammer(tmp_path, segment_bytes=4096 * 3, stream_bytes=4096 * 12)
        first = child.stdout.read(8)
        time.sleep(random.uniform(0, 0.1))
        child.kill()
        last = len(first + child.stdout.read()) // 8 - 1
        child.wait()
        child.stdout.close()
        check_whole(Run.load(tmp_path), acknowledged=last, folded=True)
        assert verify(tmp_path) > 0


READER = """
import json, sys, time
import numpy as np
sys.path.insert(0, sys.argv[2])
from hammer import norms
from holter.record import Run
from holter.record.signals import GRAD_NORM, LOSS

loads, lengths, run = 0, [], Run.load(sys.argv[1])
while not run.finished:
    run = run.reload()
    series = run[LOSS][""]
    assert np.array_equal(series.steps, np.arange(len(series))), "steps"
    assert np.array_equal(series.values, series.steps * np.float32(0.5)), "values"
    rows = run[GRAD_NORM].rows(len(series) - 50, None)
    for step, values in zip(rows.steps, rows.values):
        assert np.array_equal(values, norms(int(step))), "rows"
    lengths.append(len(series))
    loads += 1
assert lengths == sorted(lengths)
print(json.dumps({"loads": loads, "last": lengths[-1]}))
"""


def test_two_readers_while_one_writes(tmp_path):
    steps = 30_000
    with start_hammer(tmp_path, segment_bytes=1 << 17, stream_bytes=1 << 20, steps=steps) as writer:
        writer.stdout.read(8)
        command = [sys.executable, "-c", READER, str(tmp_path), str(HERE)]
        readers = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(2)
        ]
        grown = []
        with contextlib.suppress(OSError):
            os.set_blocking(writer.stdout.fileno(), False)
        for run in follow(tmp_path, every=0.05):
            with contextlib.suppress(BlockingIOError):
                writer.stdout.read()
            grown.append(run.steps)
        assert grown == sorted(grown)
        assert grown[-1] == steps
        assert len(grown) > 2
        for reader in readers:
            out, err = reader.communicate(timeout=60)
            assert reader.returncode == 0, err.decode()
            assert json.loads(out)["last"] == steps
            assert json.loads(out)["loads"] > 2


LIMITED = """
import json, resource, signal, sys
import numpy as np
import holter.record.writer as module
from holter.record import events

module.RETRY_SECONDS = 0
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
told, owners = [], ("a", "b")
writer = module.Writer(sys.argv[1], notify=told.append)

def train(first, last):
    for step in range(first, last):
        writer.write("steps", step, [("loss", owners, np.array([step, -step], np.float32))])

hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
train(0, 100)
if sys.argv[2] == "all":  # nothing can be written any more
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    train(100, 150)
    writer.event(events.Resumed(), 150)
    writer.update_meta(notes=("lost",))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    train(150, 200)
    written_on_return = json.load(open(sys.argv[1] + "/meta.json"))["lost_records"]
else:  # a file may grow so far and no further
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))
    train(100, 1000)
    written_on_return = None
writer.close()
print(json.dumps({"told": told, "lost": writer.lost, "on_return": written_on_return}))
"""


def test_a_disk_that_takes_nothing_for_a_while(tmp_path):
    said = run_child(LIMITED, tmp_path, "all")
    run = Run.load(tmp_path)
    assert len(said["told"]) == 1
    assert "training goes on" in said["told"][0]
    assert run[LOSS]["b"].steps.tolist() == [*range(100), *range(150, 200)]
    assert run[LOSS]["b"].values.tolist() == [-step for step in [*range(100), *range(150, 200)]]
    assert run.meta.lost_records == said["lost"] == said["on_return"] == 51
    assert run.meta.notes == ("lost",)
    assert verify(tmp_path) == 150


def test_a_limit_on_the_size_of_a_file_costs_a_record_a_segment(tmp_path):
    said = run_child(LIMITED, tmp_path, "some")
    run = Run.load(tmp_path)
    assert len(said["told"]) == 1
    assert 1 <= said["lost"] < 10
    assert run.meta.lost_records == said["lost"]
    assert len(run[LOSS]["a"]) == 1000 - said["lost"]
    assert np.array_equal(run[LOSS]["a"].values, run[LOSS]["a"].steps)
    assert verify(tmp_path) == 1000 - said["lost"]


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk(small_disk, monkeypatch):
    monkeypatch.setattr("holter.record.writer.RETRY_SECONDS", 0)
    told: list[str] = []
    owners = tuple(f"layer.{i}" for i in range(100))
    writer = Writer(small_disk / "run", notify=told.append, segment_bytes=1 << 16)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(64 << 10))

    def train(first, last):
        for step in range(first, last):
            writer.write(
                "parameters", step, [("grad.norm", owners, np.full(100, step, np.float32))]
            )
            writer.write("steps", step, [("loss", ONE, loss(step))])
            writer.event(Resumed(), step)

    train(0, 600)
    assert writer.lost > 100
    assert len(told) == 1
    assert "No space left on device" in told[0]
    before = len(Run.load(small_disk / "run")[GRAD_NORM]["layer.0"])
    assert 100 < before < 600
    assert verify(small_disk / "run") >= before
    ballast.unlink()
    train(600, 650)
    writer.close()
    assert len(told) == 1
    run = Run.load(small_disk / "run")
    assert run.meta.lost_records == writer.lost
    assert set(range(600, 650)) <= set(run[GRAD_NORM]["layer.99"].steps.tolist())
    for series in run[GRAD_NORM].values():
        assert np.array_equal(series.values, series.steps)
    recorded = verify(small_disk / "run") + len(run.events)
    assert recorded + writer.lost == 650 * 3


def use_everything(writer: Writer) -> None:
    for step in range(20):
        writer.write("steps", step, [("loss", ONE, loss(step))])
        writer.write("parameters", step, [("grad.norm", OWNERS, norms(step))])
    writer.event(ExceptionRaised("x", "x"), 20)
    writer.update_meta(status="finished")
    writer.close()
    writer.close()


def test_a_folder_that_is_deleted_while_writing(tmp_path):
    told: list[str] = []
    writer = Writer(tmp_path / "run", notify=told.append, segment_bytes=5000)
    use_everything(writer)
    shutil.rmtree(tmp_path / "run")
    use_everything(writer)
    assert len(told) == 1
    assert writer.lost == 41
    assert not (tmp_path / "run").exists()


def test_a_deleted_file_is_noticed_though_writing_to_it_succeeds(tmp_path, monkeypatch):
    told: list[str] = []
    writer = Writer(tmp_path / "run", notify=told.append)
    clock = iter(range(1000))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    writer.write("steps", 0, [("loss", ONE, loss(0))])
    shutil.rmtree(tmp_path / "run")
    writer.write("steps", 1, [("loss", ONE, loss(1))])
    assert len(told) == 1
    assert "its files were deleted" in told[0]
    writer.close()


def test_a_path_below_a_file_is_refused_and_a_folder_turned_file_is_survived(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        Writer(tmp_path / "file" / "run")
    told: list[str] = []
    writer = Writer(tmp_path / "run", notify=told.append)
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "run").touch()
    use_everything(writer)
    assert len(told) == 1
    assert writer.lost == 41


def test_a_folder_turned_read_only(tmp_path, monkeypatch):
    monkeypatch.setattr("holter.record.writer.RETRY_SECONDS", 0)
    told: list[str] = []
    path = str(tmp_path)
    writer = Writer(tmp_path / "run", notify=told.append)
    bound = subprocess.run(["mount", "--bind", path, path], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", path], check=True)
        use_everything(writer)
    finally:
        subprocess.run(["umount", "-l", path], check=True)
    assert len(told) == 1
    assert "Read-only" in told[0]
    assert writer.lost == 41
    use_everything(writer)  # it can be written again, and the loss is noted
    assert Run.load(tmp_path / "run").meta.lost_records == 41
    assert len(Run.load(tmp_path / "run")[LOSS][""]) == 20
