import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holter.record import Run, Writer, verify
from holter.record.errors import HolterError
from holter.record.events import PassBegan, Resumed, Unknown
from holter.record.format import ABSENT, ABSENT_BITS
from holter.record.segment import open_segments
from holter.record.signals import GRAD_NORM, LOSS, LR, WEIGHT_NORM

ONE = ("",)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def segments(path: Path, stream: str = "steps") -> list[str]:
    return sorted(file.name for file in path.glob(f"rank-0/{stream}-*.seg"))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20))
@settings(max_examples=40, deadline=None)
def test_any_float_comes_back_bit_for_bit(tmp_path_factory, bits):
    path = tmp_path_factory.mktemp("run")
    given_bits = np.array(
        [*bits, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7F800000, 0xFF800000, 1, 0x80000000],
        np.uint32,
    )
    writer = Writer(path)
    for step, value in enumerate(given_bits.view(np.float32)):
        writer.write("steps", step, [("loss", ONE, np.array([value]))])
    writer.close()
    kept = given_bits != ABSENT_BITS
    series = Run.load(path)[LOSS][""]
    assert np.array_equal(series.values.view(np.uint32), given_bits[kept])
    assert np.array_equal(series.steps, np.flatnonzero(kept))


def test_a_nan_is_a_reading_and_no_reading_is_not_a_nan(tmp_path):
    owners = ("a", "b")
    writer = Writer(tmp_path)
    writer.write("steps", 0, [("loss", owners, floats(1, np.nan)), ("lr", ONE, floats(3))])
    writer.write("steps", 1, [("lr", ONE, floats(4))])
    writer.write("steps", 2, [("loss", owners, np.array([ABSENT, 5], np.float32))])
    run = Run.load(tmp_path)
    assert run[LOSS]["a"].steps.tolist() == [0]
    assert run[LOSS]["b"].steps.tolist() == [0, 2]
    assert np.isnan(run[LOSS]["b"].values[0])
    rows = run[LOSS].rows()
    assert rows.present.tolist() == [[True, True], [False, False], [False, True]]
    assert run[LR][""].values.tolist() == [3, 4]
    writer.close()


def test_a_new_signal_starts_a_segment_and_series_join(tmp_path):
    writer = Writer(tmp_path)
    for step in range(3):
        writer.write("steps", step, [("loss", ONE, floats(step))])
    for step in range(3, 6):
        writer.write("steps", step, [("lr", ONE, floats(9)), ("loss", ONE, floats(step))])
    writer.write("steps", 6, [("loss", ("other",), floats(6))])
    writer.close()
    assert len(segments(tmp_path)) == 3
    run = Run.load(tmp_path)
    assert run[LOSS][""].steps.tolist() == [0, 1, 2, 3, 4, 5]
    assert run[LOSS][""].values.tolist() == [0, 1, 2, 3, 4, 5]
    assert run[LOSS]["other"].steps.tolist() == [6]
    assert run.steps == 7


def test_owners_of_another_identity_make_no_block_and_are_not_hoarded(tmp_path):
    writer = Writer(tmp_path)
    for step in range(3000):
        writer.write("steps", step, [("loss", tuple("ab"), floats(step, -step))])
        writer.write("steps", step, [("loss", tuple("cd"), floats(step, -step))])
    assert len(writer._streams["steps"]._known) <= 1024
    writer.close()
    assert len(segments(tmp_path)) == 2
    assert Run.load(tmp_path)[LOSS]["b"].values.tolist() == [-step for step in range(3000)]


def test_many_owners_with_odd_names(tmp_path):
    owners = (
        "",
        "a\nb",
        'q"',
        "層.0",
        "\ud800",
        "a/b",
        *(f"layer.{i}.weight" for i in range(2000)),
    )
    values = np.arange(len(owners), dtype=np.float32)
    with_norm = [("grad.norm", owners, values), ("weight.norm", owners, -values)]
    writer = Writer(tmp_path)
    writer.write("parameters", 0, with_norm)
    writer.close()
    run = Run.load(tmp_path)
    assert tuple(run[GRAD_NORM]) == owners
    assert run[WEIGHT_NORM]["\ud800"].values.tolist() == [-4]
    assert run[GRAD_NORM]["layer.1999.weight"].values.tolist() == [2005]


def test_a_record_without_readings_is_no_harm(tmp_path):
    writer = Writer(tmp_path)
    writer.write("steps", 0, [])
    writer.write("steps", 1, [("loss", (), floats())])
    writer.write("steps", 2, [("loss", ONE, floats(2))])
    writer.close()
    assert Run.load(tmp_path)[LOSS][""].steps.tolist() == [2]
    assert verify(tmp_path) == 3


def test_many_tiny_segments(tmp_path):
    writer = Writer(tmp_path, segment_bytes=1)
    for step in range(300):
        writer.write("steps", step, [("loss", ONE, floats(step))])
    writer.close()
    assert len(segments(tmp_path)) == 300
    assert Run.load(tmp_path)[LOSS][""].values.tolist() == list(range(300))
    assert verify(tmp_path) == 300


def test_a_folder_that_holds_a_run_is_refused(tmp_path):
    writer = Writer(tmp_path)
    writer.write("steps", 0, [("loss", ONE, floats(0))])
    writer.close()
    with pytest.raises(HolterError, match="resume"):
        Writer(tmp_path)
    Writer(tmp_path, rank=1).close()


def test_resuming_goes_on_in_new_segments_past_a_torn_one(tmp_path):
    writer = Writer(tmp_path, status="running")
    writer.update_meta(seed=1)
    for step in range(5):
        writer.write("steps", step, [("loss", ONE, floats(step))])
    writer.event(PassBegan("a"), 3)
    writer.update_meta(status="crashed")
    torn = tmp_path / "rank-0" / "steps-000000.seg"
    os.truncate(torn, torn.stat().st_size - 5)
    with (tmp_path / "rank-0" / "events.jsonl").open("a") as file:
        file.write('{"step": 4, "wa')
    (tmp_path / "rank-0" / "parameters-000003.tmp").write_bytes(b"left over")

    again = Writer(tmp_path, resume=True)
    for step in range(3, 7):  # from a checkpoint: two steps are trained a second time
        again.write("steps", step, [("loss", ONE, floats(step + 100))])
    again.write("parameters", 3, [("grad.norm", ONE, floats(1))])
    again.event(Resumed(), 3)
    again.close()
    run = Run.load(tmp_path)
    assert run[LOSS][""].steps.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert run[LOSS][""].values.tolist() == [0, 1, 2, 103, 104, 105, 106]
    assert [event.what for event in run.events] == [PassBegan("a"), Resumed()]
    assert run.meta.seed == 1
    assert not run.finished
    assert not list(tmp_path.glob("rank-0/*.tmp"))
    assert verify(tmp_path) == 4 + 4 + 1


def test_events_hold_anything_and_nan_stays_nan(tmp_path):
    writer = Writer(tmp_path)
    odd = {"loss": np.nan, "up": np.inf, "down": -np.inf, "nested": [1, {"x": np.nan}]}
    writer.event(Unknown("validation", odd), 3)
    many = {"small": np.float32(0.5), "many": np.arange(2)}
    writer.event(Unknown("odd", {"path": Path("/x"), **many, "text": "nan\n"}), 4)
    writer.close()
    first, second = Run.load(tmp_path).events
    assert (first.what.name, first.step) == ("validation", 3)
    assert np.isnan(first.what.data["loss"])
    assert np.isnan(first.what.data["nested"][1]["x"])
    assert (first.what.data["up"], first.what.data["down"]) == (np.inf, -np.inf)
    assert second.what.data == {"path": "/x", "small": 0.5, "many": [0, 1], "text": "nan\n"}
    for line in (tmp_path / "rank-0" / "events.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # strict JSON, for every other reader


def test_meta_is_replaced_whole_and_states_its_format(tmp_path):
    writer = Writer(tmp_path, status="running")
    path = tmp_path / "meta.json"
    before = path.open("rb")
    writer.update_meta(status="finished", duration=np.nan)
    assert json.loads(before.read())["status"] == "running"
    before.close()
    meta = Run.load(tmp_path).meta
    assert meta.status == "finished"
    assert np.isnan(meta.duration)
    assert json.loads(path.read_text())["format"] == 1
    assert not list(tmp_path.glob("*.tmp"))
    writer.close()


def test_ranks_have_files_of_their_own(tmp_path):
    for rank in (0, 1, 10):
        writer = Writer(tmp_path, rank=rank)
        writer.update_meta(seed=rank)
        writer.write("steps", 0, [("loss", ONE, floats(rank))])
        writer.close()
    run = Run.load(tmp_path)
    assert run.ranks == (0, 1, 10)
    assert run.meta.seed == 0
    other = Run.load(tmp_path, rank=10)
    assert other[LOSS][""].values.tolist() == [10]
    assert other.meta.seed == 10
    with pytest.raises(HolterError, match="no rank 2; it has 0, 1, 10"):
        Run.load(tmp_path, rank=2)


def test_closing_twice_and_writing_after_closing(tmp_path):
    writer = Writer(tmp_path)
    writer.write("steps", 0, [("loss", ONE, floats(0))])
    writer.close()
    writer.close()
    writer.write("steps", 1, [("loss", ONE, floats(1))])
    writer.event(Resumed(), 1)
    writer.close()
    run = Run.load(tmp_path)
    assert run[LOSS][""].steps.tolist() == [0, 1]
    assert len(run.events) == 1


def test_a_foreign_name_in_the_folder_does_not_disturb_the_writer(tmp_path):
    (tmp_path / "rank-0").mkdir()
    for name in ("steps-old.txt", "steps-.tmp", "steps-late-000007.tmp"):
        (tmp_path / "rank-0" / name).touch()
    writer = Writer(tmp_path)
    writer.write("steps", 0, [("loss", ONE, floats(0))])
    writer.close()
    assert [each.index for each in open_segments(tmp_path / "rank-0")] == [0]


def test_a_short_write_that_cannot_be_taken_back_leaves_later_records_aligned(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("holter.record.writer.RETRY_SECONDS", 0)
    told = []
    writer = Writer(tmp_path, notify=told.append)
    real = os.write
    for step in range(30):
        if step % 10 == 5:
            calls = iter(range(2))

            def short(fd, data, calls=calls):
                if next(calls):
                    raise OSError(28, "No space left on device")
                return real(fd, bytes(data)[:13])

            def fails(*_):
                raise OSError(5, "Input/output error")

            with monkeypatch.context() as patch:
                patch.setattr(os, "write", short)
                patch.setattr(os, "ftruncate", fails)
                writer.write("steps", step, [("loss", ONE, floats(step))])
        else:
            writer.write("steps", step, [("loss", ONE, floats(step))])
    writer.close()
    run = Run.load(tmp_path)
    assert run[LOSS][""].values.tolist() == [step for step in range(30) if step % 10 != 5]
    assert run.meta.lost_records == writer.lost == 3
    assert verify(tmp_path) == 27
    assert len(told) == 1
