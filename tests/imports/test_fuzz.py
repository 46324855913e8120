"""Mutated logs: one sentence, or an import; with checksums a right one."""

import json
import random
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import holter
from holter import HolterError, Run
from holter.imports import import_log
from holter.imports.finding import READERS, reader_of
from holter.imports.readers import tensorboard
from holter.record.signals import LOSS

STEPS = 60
FEW, MANY = 200, 2000
TOKENS = (
    *(b"nan", b"-inf", b"1e999", b"-1", b"99999999999999999999", b"\0", b"\xff" * 8, b'"', b"{"),
    *(b"[", b",", b"\n", b"loss", b"epoch", b"step", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
)


def loss_at(step: int) -> float:
    return 2.0 / (step + 1)


def event_file() -> bytes:
    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    records = []
    for step in range(STEPS):
        value = field(1, b"train/loss") + b"\x15" + struct.pack("<f", loss_at(step))
        data = b"\x10" + bytes([step]) + field(5, field(1, value))
        length = struct.pack("<Q", len(data))
        sums = [struct.pack("<I", tensorboard._masked(part)) for part in (length, data)]
        records.append(length + sums[0] + data + sums[1])
    return b"".join(records)


def offline_run() -> bytes:
    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    blocks = b":W&B\xe1\xbe\x00"
    for step in range(STEPS):
        number = b"\x31" + struct.pack("<d", loss_at(step))
        item = field(1, field(2, b"train") + field(2, b"loss") + number)
        data = field(2, item + field(2, b"\x08" + bytes([step])))
        checksum = zlib.crc32(data, zlib.crc32(b"\x01"))
        blocks += struct.pack("<IHB", checksum, len(data), 1) + data
    return blocks


def database() -> bytes:
    with closing(sqlite3.connect(":memory:")) as store:
        store.execute(
            "CREATE TABLE metrics (key TEXT, value FLOAT, timestamp BIGINT, run_uuid TEXT,"
            " step BIGINT, is_nan BOOLEAN)"
        )
        rows = [("loss", loss_at(step), step, "a", step, False) for step in range(STEPS)]
        store.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        store.commit()
        return store.serialize()


def lines(row: Callable[[int, float], str], head: str = "") -> bytes:
    return (head + "".join(row(step, loss_at(step)) + "\n" for step in range(STEPS))).encode()


def state() -> bytes:
    rows = [{"step": step, "loss": loss_at(step), "epoch": step / 9} for step in range(STEPS)]
    return json.dumps({"global_step": STEPS, "log_history": rows}, indent=1).encode()


FILES = {
    "tensorboard": event_file,
    "wandb": offline_run,
    "mlflow": database,
    "mlflow files": lambda: lines(lambda step, loss: f"{step} {loss} {step}"),
    "trainer_state": state,
    "json lines": lambda: lines(lambda step, loss: json.dumps({"step": step, "loss": loss})),
    "csv": lambda: lines(
        lambda step, loss: f"{step // 9},{step},{loss},,0.1", "epoch,step,loss,val_loss,lr\n"
    ),
    "text": lambda: lines(
        lambda step, loss: f"[train] epoch {step // 9} step {step}: loss {loss:.6f}, lr 1e-3"
    ),
}
CHECKED = ("tensorboard", "wandb")  # every reading is covered by a checksum


def placed(kind: str, data: bytes, folder: Path) -> Path:
    """Write a log as its tool lays it out; return what is imported."""
    path = folder / "log"
    if kind != "mlflow files":
        path.write_bytes(data)
        return path
    (path / "metrics").mkdir(parents=True, exist_ok=True)
    (path / "meta.yaml").write_text("run_id: a\n")
    (path / "metrics" / "loss").write_bytes(data)
    return path


def test_every_reader_has_a_file(tmp_path: Path) -> None:
    read = set()
    for kind, made in FILES.items():
        (folder := tmp_path / kind).mkdir()
        read.add(reader_of(placed(kind, made(), folder)))
    assert read == set(READERS)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return data after one to four changes: flips, cuts, copies, insertions."""
    for _ in range(chance.randint(1, 4)):
        at, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        end = min(end, at + 400)
        kind = chance.randrange(6)
        if kind == 0 and data:
            place = min(at, len(data) - 1)
            flipped = data[place] ^ 1 << chance.randrange(8)
            data = data[:place] + bytes([flipped]) + data[place + 1 :]
        elif kind == 1:
            data = data[:at]
        elif kind == 2:
            data = data[:at] + data[end:]
        elif kind == 3:
            data = data[:end] + data[at:]
        elif kind == 4:
            data = data[:at] + chance.choice(TOKENS) * chance.choice((1, 1, 50)) + data[at:]
        else:
            data = data[:at] + chance.randbytes(end - at) + data[end:]
    return data


def examine(kind: str, count: int, folder: Path) -> tuple[int, int]:
    """Import mutated files; return how many were imported and how many refused."""
    chance = random.Random(f"holter {kind}")
    original = FILES[kind]()
    imported = refused = 0
    for number in range(count):
        path = placed(kind, mutated(original, chance), folder)
        try:
            run = import_log(path)
        except HolterError as error:
            assert str(error).count("\n") == 0
            assert len(str(error)) < 500
            refused += 1
        else:
            imported += 1
            require_sound(run, whole=kind in CHECKED)
            if number % 10 == 0:
                checkup = holter.check(run)
                assert not checkup.failures, (number, checkup.failures)
    return imported, refused


def require_sound(run: Run, *, whole: bool) -> None:
    assert 0 < run.steps <= 1 << 62
    if whole and LOSS in run:
        for step, value in zip(run[LOSS][""].steps, run[LOSS][""].values, strict=True):
            assert value == pytest.approx(loss_at(int(step)))


@pytest.mark.parametrize("kind", FILES)
def test_mutated_files(kind: str, tmp_path: Path) -> None:
    assert import_log(placed(kind, FILES[kind](), tmp_path)).steps == STEPS
    imported, refused = examine(kind, FEW, tmp_path)
    assert imported > 0
    assert refused > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", FILES)
def test_thousands_of_mutated_files(kind: str, tmp_path: Path) -> None:
    imported, refused = examine(kind, MANY, tmp_path)
    assert imported + refused == MANY
