import json
import os
import shutil

import numpy as np
import pytest

from holter.record import Event, Run, Series, Writer, follow, verify
from holter.record.errors import HolterError
from holter.record.events import PassBegan, Unknown
from holter.record.format import ABSENT, FORMAT
from holter.record.meta import Meta
from holter.record.signals import GRAD_NORM, LOSS

ONE = ("",)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.fixture
def ten(tmp_path):
    """A run of ten steps in one segment, and that segment."""
    writer = Writer(tmp_path / "run", status="running")
    for step in range(10):
        writer.write("steps", step, [("loss", ("a", "b"), floats(step, -step))])
    writer.close()
    return tmp_path / "run", tmp_path / "run" / "rank-0" / "steps-000000.seg"


def test_a_segment_cut_at_any_byte_loses_only_what_is_torn(ten):
    path, file = ten
    raw, record = file.read_bytes(), 28
    for cut in {*range(400), *range(4000, 4130), *range(len(raw) - 2 * record, len(raw) + 1)}:
        file.write_bytes(raw[:cut])
        whole = max(0, cut - 4096) // record
        assert verify(path) == whole
        run = Run.load(path)
        assert run.steps == whole
        if whole:
            assert run[LOSS]["b"].values.tolist() == [-step for step in range(whole)]


def test_a_last_record_of_wrong_bytes_is_torn_too(ten):
    path, file = ten
    raw = bytearray(file.read_bytes())
    raw[-3] ^= 0x10
    file.write_bytes(raw + bytes(50))
    assert verify(path) == 9
    assert Run.load(path).steps == 9


def test_a_flipped_byte_in_the_middle_is_named_with_file_and_step(ten):
    path, file = ten
    raw = bytearray(file.read_bytes())
    raw[4096 + 28 * 4 + 22] ^= 0x10
    file.write_bytes(raw)
    with pytest.raises(HolterError, match=r"steps-000000\.seg \(step 4\) is damaged"):
        verify(path)


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n" + bytes(100), b"hello\nworld\n", b"{}"])
def test_a_foreign_file_gets_a_sentence(ten, content):
    path, _ = ten
    (path / "rank-0" / "photo.seg").write_bytes(content)
    for read in (Run.load, verify):
        with pytest.raises(HolterError, match=r"photo\.seg is not a segment of a holter run"):
            read(path)


def test_an_empty_segment_is_a_writer_that_died_early(ten):
    path, _ = ten
    (path / "rank-0" / "steps-000001.seg").touch()
    assert Run.load(path).steps == 10
    assert verify(path) == 10


def test_a_newer_format_asks_for_an_upgrade(ten):
    path, _ = ten
    (path / "meta.json").write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(HolterError, match=r"meta\.json has run format 2.*upgrade"):
        Run.load(path)
    with pytest.raises(HolterError, match="upgrade"):
        Writer(path, resume=True)
    (path / "meta.json").write_text('{"format": "soon"}')
    with pytest.raises(HolterError, match="upgrade"):
        Run.load(path)


@pytest.mark.parametrize("content", ["", "{", "[1]", '"x"', "\x00"])
def test_a_damaged_meta_gets_a_sentence_and_none_is_no_harm(ten, content):
    path, _ = ten
    (path / "meta.json").write_text(content)
    with pytest.raises(HolterError, match=r"meta\.json .* remove it"):
        Run.load(path)
    (path / "meta.json").unlink()
    assert Run.load(path).meta == Meta()


def test_a_path_that_is_not_there_gets_the_nearest_name(tmp_path):
    (tmp_path / "metrics.csv").touch()
    with pytest.raises(HolterError, match=r"no file or folder .*did you mean .*metrics\.csv\?$"):
        Run.load(tmp_path / "metric.csv")
    with pytest.raises(HolterError, match=r"There is no file or folder .*nowhere\.json\.$"):
        Run.load(tmp_path / "nowhere.json")
    with pytest.raises(HolterError, match=r"There is no folder .*records one\.$"):
        Run.load(tmp_path / "no" / "run")


@pytest.mark.parametrize("read", [Run.load, verify])
def test_what_is_no_run_gets_a_sentence(tmp_path, ten, read):
    path, file = ten
    with pytest.raises(HolterError, match="There is no folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(HolterError, match="is not a holter run"):
        read(file)
    (tmp_path / "empty").mkdir()
    with pytest.raises(HolterError, match="is not a holter run"):
        read(tmp_path / "empty")
    with pytest.raises(HolterError, match=r"holds a run; name one, for example .*/run\."):
        read(tmp_path)
    shutil.copytree(path, tmp_path / "run2")
    with pytest.raises(HolterError, match=r"holds 2 runs; name one, for example .*/run2\."):
        read(tmp_path)


def test_torn_and_foreign_lines_among_the_events_are_left_out(ten):
    path, _ = ten
    lines = ['{"step": 1, "wall": 0.5, "kind": "a"}', "[1]", "3", "{}", "\x00\x00", '{"step": 2,']
    (path / "rank-0" / "events.jsonl").write_text("\n".join(lines))
    assert Run.load(path).events == (Event(1, 0.5, Unknown("a", {})),)


def test_rows_of_a_window(tmp_path):
    writer = Writer(tmp_path, segment_bytes=4096 + 5 * 28)
    for step in range(0, 60, 2):
        writer.write("steps", step, [("loss", ("a", "b"), floats(step, -step))])
    writer.close()
    table = Run.load(tmp_path)[LOSS]
    for first, last in [(None, None), (0, 58), (7, 31), (20, 20), (21, 21), (50, None), (None, 8)]:
        low, high = (0 if first is None else first), (99 if last is None else last)
        steps = [step for step in range(0, 60, 2) if low <= step <= high]
        rows = table.rows(first, last)
        assert rows.steps.tolist() == steps
        assert rows.owners == ("a", "b")
        assert rows.values.tolist() == [[step, -step] for step in steps]
        assert rows.present.all()


def test_overlapping_blocks_join_and_the_later_reading_holds(tmp_path):
    writer = Writer(tmp_path)
    writer.write("steps", 0, [("loss", ("a", "b"), floats(1, 2))])
    writer.write(
        "steps", 1, [("loss", ("a", "b"), floats(3, 4)), ("loss", ("c", "b"), floats(5, 6))]
    )
    writer.write("steps", 2, [("loss", ("c", "b"), np.array([7, ABSENT], np.float32))])
    writer.close()
    table = Run.load(tmp_path)[LOSS]
    assert list(table) == ["a", "b", "c"]
    assert table["b"].steps.tolist() == [0, 1]
    assert table["b"].values.tolist() == [2, 6]
    rows = table.rows()
    assert rows.present.tolist() == [[True, True, False], [True, True, True], [False, False, True]]
    assert rows.values[rows.present].tolist() == [1, 2, 3, 6, 5, 7]


def test_records_that_come_late_are_put_in_order(tmp_path):
    writer = Writer(tmp_path)
    for step in (3, 4, 2, 2, 6, 5):
        writer.write("steps", step, [("loss", ("a", "b"), floats(step, -step))])
    writer.write("steps", 2, [("loss", ("a", "b"), np.array([ABSENT, 9], np.float32))])
    writer.close()
    run = Run.load(tmp_path)
    assert run.steps == 7
    assert run[LOSS]["a"].steps.tolist() == [2, 3, 4, 5, 6]
    rows = run[LOSS].rows(2, 4)
    assert rows.steps.tolist() == [2, 3, 4]
    assert rows.values.tolist() == [[2, 9], [3, -3], [4, -4]]


def test_a_run_in_memory_equals_the_one_on_disk(tmp_path):
    steps = np.array([0, 1, 5, 9])
    values = {"a": floats(1, np.nan, np.inf, -0.0), "b": floats(4, 3, 2, 1)}
    writer = Writer(tmp_path)
    writer.update_meta(seed=3)
    for at, step in enumerate(steps):
        writer.write(
            "steps", int(step), [("loss", ("a", "b"), floats(values["a"][at], values["b"][at]))]
        )
    writer.event(PassBegan("x"), 5)
    writer.close()
    loaded = Run.load(tmp_path)
    made = Run.of(
        {LOSS: {owner: Series(steps, each) for owner, each in values.items()}},
        events=loaded.events,
        meta=loaded.meta,
    )
    assert (made.steps, made.events, made.meta) == (loaded.steps, loaded.events, loaded.meta)
    assert made.ranks == loaded.ranks
    assert LOSS in made
    assert GRAD_NORM not in made
    for owner in values:
        np.testing.assert_array_equal(made[LOSS][owner].steps, loaded[LOSS][owner].steps)
        np.testing.assert_array_equal(made[LOSS][owner].values, loaded[LOSS][owner].values)
    for window in [(None, None), (1, 5), (6, 8)]:
        np.testing.assert_array_equal(
            made[LOSS].rows(*window).values, loaded[LOSS].rows(*window).values
        )
    assert made.reload() is made
    assert loaded.reload().steps == 10


def test_a_run_in_memory_may_be_given_unordered():
    run = Run.of({LOSS: {"": Series(np.array([2, 0, 1]), floats(2, 0, 1))}})
    assert run[LOSS][""].values.tolist() == [0, 1, 2]
    assert run[LOSS].rows(1, 2).values.tolist() == [[1], [2]]
    assert run.steps == 3
    assert Run.of({LOSS: {"": Series(np.empty(0, np.int64), floats())}}).steps == 0


def test_loading_does_not_copy_and_an_old_snapshot_stays_as_it_was(ten):
    path, _ = ten
    before = Run.load(path)
    writer = Writer(path, resume=True)
    writer.write("steps", 10, [("loss", ("a", "b"), floats(10, -10))])
    writer.close()
    assert before[LOSS]["a"].last == 9
    assert before.reload()[LOSS]["a"].last == 10


def test_follow_yields_growth_and_ends_when_the_run_does(tmp_path):
    writer = Writer(tmp_path, status="running")
    writer.write("steps", 0, [("loss", ONE, floats(0))])
    seen = []
    for run in follow(tmp_path, every=0.001):
        seen.append(run[LOSS][""].last)
        if len(seen) < 5:
            writer.write("steps", len(seen), [("loss", ONE, floats(0))])
        else:
            writer.update_meta(status="finished")
    assert seen == [0, 1, 2, 3, 4, 4]
    assert [each.finished for each in follow(tmp_path)] == [True]
    writer.close()


def test_a_segment_that_vanishes_between_listing_and_opening_is_looked_for_again(ten, monkeypatch):
    path, file = ten
    ghost = file.with_name("steps-000001.seg")
    os.link(file, ghost)
    real = type(ghost).open

    def vanishing(self, mode):
        if self == ghost:
            ghost.unlink(missing_ok=True)
        return real(self, mode)

    monkeypatch.setattr(type(ghost), "open", vanishing)
    assert Run.load(path).steps == 10


def test_processes_that_a_script_has_started_are_ranks_before_it_ends(tmp_path):
    Writer(tmp_path, status="running").close()  # the script itself, which only starts others
    for number, loss in enumerate((1.0, 2.0)):
        writer = Writer(tmp_path / f"worker-{number}", status="running")
        writer.write("steps", 0, [(LOSS.name, ("",), np.array([loss], np.float32))])
        writer.update_meta(steps=number + 5)
    run = Run.load(tmp_path)
    assert run.ranks == (0, 1)
    assert [run.of_rank(rank)[LOSS][""].values.tolist() for rank in run.ranks] == [[1.0], [2.0]]
    assert [run.of_rank(rank).meta.steps for rank in run.ranks] == [5, 6]
