"""Each kind of log in unusual, incomplete and hostile forms."""

import json
import math
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import holter
from holter import HolterError, OutcomeState, Run
from holter.imports import holds_log, import_log, log, parse_mapping, saved, summary
from holter.imports.readers import tensorboard
from holter.record.signals import ACCURACY, LOSS, LR, VAL_ACCURACY, VAL_LOSS, Signal


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def readings(run: Run, signal: Signal) -> dict[int, float]:
    (series,) = run[signal].values()
    return dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))


PRINTED = {
    "plain": ("epoch 0 step 120 loss 0.5 val_loss 0.75 acc 0.25 lr 1e-3", 120),
    "brackets": ("Epoch [1/10], Step [120/500], Loss: 0.5, lr=1e-3", 120),
    "bars": ("| ep  1 | step   120 | lr 0.001 | ms/batch 5.5 | loss  0.5 | ppl 1.64", 120),
    "nanogpt": ("iter 120: loss 0.5000, time 12.34ms, mfu 1.2%", 120),
    "progress": ("\r 24%|##  | 120/500 [00:01<00:03, 99.1it/s, loss=0.5, step=120]", 120),
    "stamps": ("2026-03-01 12:00:01,123 INFO trainer.py:33 step=120 loss=0.5", 120),
    "colour": ("\x1b[32mstep\x1b[0m 120 \x1b[1mloss\x1b[0m: 0.5 (avg 0.7)", 120),
    "dict": ("{'loss': 0.5, 'learning_rate': 1e-3, 'step': 120}", 120),
}


@pytest.mark.parametrize("spelling", PRINTED)
def test_what_trainings_print(tmp_path: Path, spelling: str) -> None:
    line, step = PRINTED[spelling]
    run = import_log(written(tmp_path / "train.log", f"starting on cpu\n{line}\ndone\n"))
    assert readings(run, LOSS) == {step: 0.5}
    if LR in run:
        assert readings(run, LR) == {step: pytest.approx(1e-3)}


def test_a_split_holds_for_the_rest_of_its_line(tmp_path: Path) -> None:
    lines = (
        "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.300",
        "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.000",
        "Test set: Average loss: 1.5000, Accuracy: 9000/10000 (90%)",
        "step 3: train loss 1.25, val loss 1.75",
    )
    run = import_log(written(tmp_path / "out.txt", "\n".join(lines)))
    assert list(readings(run, LOSS).values()) == pytest.approx([2.3, 2.0, 1.25])
    assert list(readings(run, VAL_LOSS).values()) == [1.75]  # rather than that of the test set
    assert list(readings(run, VAL_ACCURACY).values()) == pytest.approx([0.9])


def test_steps_that_begin_again_with_each_epoch_are_counted_on(tmp_path: Path) -> None:
    rows = "".join(f"{epoch},{step},{epoch + 1}\n" for epoch in range(3) for step in range(4))
    run = import_log(written(tmp_path / "log.csv", f"epoch,step,loss\n{rows}"))
    assert readings(run, LOSS) == {n: n // 4 + 1 for n in range(12)}


def test_a_resumed_log_keeps_the_later_readings(tmp_path: Path) -> None:
    rows = [(step, 1.0) for step in range(10)] + [(step, 2.0) for step in range(5, 12)]
    lines = "".join(json.dumps({"global_step": step, "loss": loss}) + "\n" for step, loss in rows)
    run = import_log(written(tmp_path / "log.jsonl", lines))
    assert readings(run, LOSS) == {step: 1.0 if step < 5 else 2.0 for step in range(12)}


def test_percentages_and_nested_names(tmp_path: Path) -> None:
    rows = [{"step": n, "train": {"loss": 1.0, "acc": 50.0 + n}, "x": None} for n in range(3)]
    run = import_log(written(tmp_path / "log.json", json.dumps(rows)))
    assert readings(run, ACCURACY) == pytest.approx({0: 0.5, 1: 0.51, 2: 0.52})


def test_a_history_of_keras_and_other_delimiters(tmp_path: Path) -> None:
    history = {"loss": [3.0, 2.0], "val_loss": [4.0, math.nan]}
    run = import_log(written(tmp_path / "history.json", json.dumps(history)))
    assert readings(run, LOSS) == {0: 3.0, 1: 2.0}
    assert math.isnan(readings(run, VAL_LOSS)[1])
    table = ";epoch;loss;lr\n0;0;3.0;0.1\n1;1;2.0;0.1\n"
    assert readings(import_log(written(tmp_path / "log.csv", table)), LOSS) == {0: 3.0, 1: 2.0}


def test_names_are_mapped_and_what_was_ignored_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "step,my/obj,loss,held\n0,1,2,3\n1,4,5,6\n")
    run = import_log(path, parse_mapping(["loss=my/obj", "val_loss=held"]))
    assert readings(run, LOSS) == {0: 1.0, 1: 4.0}
    assert readings(run, VAL_LOSS) == {0: 3.0, 1: 6.0}
    assert "loss from my/obj" in summary(run)
    assert "ignored loss" in summary(run)
    with pytest.raises(HolterError, match="no name 'other'"):
        import_log(path, parse_mapping(["loss=other"]))
    bare = written(tmp_path / "bare.csv", "step,objective\n0,1\n1,2\n")
    with pytest.raises(HolterError, match=r"--map loss=NAME.*objective"):
        import_log(bare)


def test_printed_names_that_are_unknown_are_told(tmp_path: Path) -> None:
    lines = [f"step {n} loss {2 / (n + 1):.3f} fluency: {n} took 3 s" for n in range(30)]
    run = import_log(written(tmp_path / "a.log", "\n".join(lines)))
    assert summary(run).endswith("loss from loss; ignored fluency")
    bare = written(tmp_path / "b.log", "\n".join(f"step {n} Objective {n}" for n in range(30)))
    with pytest.raises(HolterError, match=r"--map loss=NAME.*Objective"):
        import_log(bare)
    assert import_log(bare, parse_mapping(["loss=Objective"])).steps == 30
    played = [f"step {n} reward {n} loss 2.3" for n in range(300)]
    checkup = holter.check(import_log(written(tmp_path / "c.log", "\n".join(played))))
    assert checkup.outcome.state is OutcomeState.UNKNOWN  # its loss need not fall


def test_names_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    rows = [{"step": n, "loss\x1b": 1.0, "\x1b]0;x\x07": 1.0} for n in range(3)]
    run = import_log(written(tmp_path / "log.json", json.dumps(rows)))
    assert summary(run).isprintable()
    assert all(note.isprintable() for note in run.meta.notes)


def test_a_database_of_mlflow(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as store, store:  # the columns of its table, of any version
        store.execute(
            "CREATE TABLE metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT,"
            " run_uuid VARCHAR(32), step BIGINT, is_nan BOOLEAN)"
        )
        rows = [("train/loss", 1.0 / (n + 1), n, "new", n, n == 4) for n in range(6)]
        rows.append(("train/loss", 9.0, -1, "old", 0, False))
        store.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
    before = path.read_bytes()
    run = import_log(path)
    assert readings(run, LOSS)[5] == pytest.approx(1 / 6)
    assert len(readings(run, LOSS)) == 6
    assert math.isnan(readings(run, LOSS)[4])
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["mlflow.db"]
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as store, store:
        store.execute("CREATE VIEW metrics AS SELECT 1 AS key")
    with pytest.raises(HolterError, match="without the MLflow table"):
        import_log(other)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", tensorboard._masked(part)) for part in (length, data)]
    return length + sums[0] + data + sums[1]


def scalar(name: bytes, step: int, value: float) -> bytes:
    inner = b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(inner)]) + inner
    return record(b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary)


def test_damage_in_an_event_file_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    records = [scalar(b"loss", step, 1.0) for step in range(20)]
    records[5] = records[5][:-6] + b"\x00\x00" + records[5][-4:]  # fails its checksum
    large = record(b"\0" * (2 << 20))
    run = import_log(written(tmp_path / "a.tfevents", large + b"".join(records) + records[0][:9]))
    assert set(readings(run, LOSS)) == set(range(20)) - {5}
    assert any(note.startswith("2 records or lines") for note in run.meta.notes)


def test_impossible_steps_are_left_out(tmp_path: Path) -> None:
    lines = [{"step": step, "loss": 1.0} for step in (0, 1, -5, 1e30, 2)]
    run = import_log(written(tmp_path / "log.jsonl", "\n".join(map(json.dumps, lines))))
    assert run.steps == 3


HOSTILE = {
    "empty": b"",
    "zeros": b"\0" * 5000,
    "deep": b"[" * 100_000,
    "deep rows": b'{"a":' * 50_000,
    "digits": b'{"step": 1, "loss": ' + b"9" * 10_000 + b"}",
    "one long line": b"loss," * 200_000,
    "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94",
    "database": b"SQLite format 3\0" + b"\xff" * 5000,
    "wandb": b":W&B\xe1\xbe\x00" + b"\xff" * 40_000,
    "binary": bytes(range(256)) * 20,
    "object": b"{}",
    "numbers": b"1 2 3\n4 5 6\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_log_is_one_sentence(tmp_path: Path, kind: str) -> None:
    with pytest.raises(HolterError) as caught:
        import_log(written(tmp_path / "log", HOSTILE[kind]))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST_READINGS", 1000)
    path = written(tmp_path / "log.csv", "step,loss\n" + "".join(f"{n},1\n" for n in range(2000)))
    with pytest.raises(HolterError, match="more than 1,000 readings"):
        import_log(path)
    names = ",".join(f"name{n}" for n in range(5000))
    wide = written(tmp_path / "wide.csv", f"step,loss,{names}\n0,1{',1' * 5000}\n1,2\n")
    run = import_log(wide)
    assert run.meta.source is not None
    assert len(run.meta.source.ignored) <= log.MOST_NAMES


def test_folders(tmp_path: Path) -> None:
    assert not holds_log(tmp_path)
    assert not holds_log(tmp_path / "missing")
    with pytest.raises(HolterError, match="neither a run"):
        import_log(tmp_path)
    with pytest.raises(HolterError, match="There is no file"):
        import_log(tmp_path / "missing")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "events.out.tfevents.1", scalar(b"loss", 0, 1.0))
        written(tmp_path / name / "events.out.tfevents.2", scalar(b"loss", 1, 2.0))
    assert holds_log(tmp_path)
    assert readings(import_log(tmp_path / "a"), LOSS) == {0: 1.0, 1: 2.0}
    with pytest.raises(HolterError, match="2 logs; name one"):
        import_log(tmp_path)


def test_a_saved_import_is_the_same_run(tmp_path: Path) -> None:
    rows = "".join(f"{n},{2.0 / (n + 1)},{0.1},{0.01}\n" for n in range(60))
    run = import_log(written(tmp_path / "log.csv", f"step,loss,lr-a,lr-b\n{rows}"))
    again = saved(run, tmp_path / "run")
    assert again.meta == run.meta
    assert set(again.tables) == set(run.tables)
    for name, table in run.tables.items():
        for owner, series in table.items():
            np.testing.assert_array_equal(again.tables[name][owner].values, series.values)
    assert holter.check(again).outcome == holter.check(run).outcome


def course(path: Path, losses: list[float], **more: object) -> holter.Checkup:
    lines = [json.dumps({"step": 10 * n, "loss": loss, **more}) for n, loss in enumerate(losses)]
    return holter.check(import_log(written(path, "\n".join(lines))))


def test_losses_alone_tell_of_plain_failures(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=400)
    falls = 0.3 + 2 * np.exp(-np.arange(400) / 60) + 0.05 * noise
    rises = falls * np.exp(np.maximum(np.arange(400) - 200, 0) / 20)
    flat = 2.3 + 0.05 * noise
    spike = falls + 8.0 * np.isin(np.arange(400), range(250, 400))
    for losses, state, rule in (
        (falls, OutcomeState.LEARNED, None),
        (rises, OutcomeState.DIVERGED, "diverging-loss"),
        (flat, OutcomeState.LEARNED_NOTHING, "flat-loss"),
        (spike, OutcomeState.DIVERGED, "loss-spike"),
    ):
        checkup = course(tmp_path / "log.jsonl", losses.tolist())
        assert checkup.outcome.state is state
        found = {finding.rule for finding in checkup.findings}
        assert found == set() if rule is None else rule in found


def test_a_level_loss_may_be_that_of_a_converged_model(tmp_path: Path) -> None:
    flat = 2.3 + 0.05 * np.random.default_rng(0).normal(size=400)
    checkup = course(tmp_path / "log.jsonl", flat.tolist())
    assert "had already converged" in checkup.outcome.says
    assert {finding.severity for finding in checkup.findings} == {holter.Severity.WARNING}
    equal = course(tmp_path / "log.jsonl", [2.3] * 400)
    assert holter.Severity.ERROR in {finding.severity for finding in equal.findings}


def test_a_step_that_the_training_survived_was_skipped(tmp_path: Path) -> None:
    losses = [2 / (n + 1) for n in range(200)]
    for at, expected in ((100, ()), (150, ("nonfinite-gradient", "nonfinite-loss"))):
        rows = [{"step": n, "loss": loss, "grad_norm": 1.0} for n, loss in enumerate(losses)]
        rows[50]["grad_norm"] = math.inf
        for row in rows[at : at + 1] if not expected else rows[at:]:
            row["loss"] = row["grad_norm"] = math.nan
        text = "\n".join(map(json.dumps, rows))
        checkup = holter.check(import_log(written(tmp_path / "log.jsonl", text)))
        assert tuple(sorted(finding.rule for finding in checkup.findings)) == expected


def test_losses_that_need_not_fall_are_not_judged(tmp_path: Path) -> None:
    flat = (2.3 + 0.05 * np.random.default_rng(0).normal(size=400)).tolist()
    checkup = course(tmp_path / "log.jsonl", flat, reward=1.0)
    assert not checkup.findings
    assert checkup.outcome.state is OutcomeState.UNKNOWN
    late = [json.dumps({"step": 50_000 + 10 * n, "loss": loss}) for n, loss in enumerate(flat)]
    resumed = holter.check(import_log(written(tmp_path / "late.jsonl", "\n".join(late))))
    assert resumed.outcome.state is OutcomeState.STALLED


def test_what_a_log_lacks_is_not_examined(tmp_path: Path) -> None:
    checkup = course(tmp_path / "log.jsonl", [2 / (n + 1) for n in range(100)])
    because = {verdict.rule: verdict.because for verdict in checkup.not_examined}
    assert because["overfitting"] == "the log has no validation loss"
    assert because["exploding-gradients"] == "the log has no gradient norm"
    assert "holter run" in because["dead-units"]
    assert "unapplied-gradients" in because
    assert {verdict.rule for verdict in checkup.clear} <= {
        "decayed-learning-rate",
        "diverging-loss",
        "flat-loss",
        "loss-plateau",
        "loss-spike",
        "nonfinite-loss",
        "oscillating-loss",
        "unbounded-loss",
        "unexplained-failure",
    }
    assert "holter run" in checkup.advice
