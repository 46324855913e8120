import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holter.record import Run, Writer, verify
from holter.record.decimation import WINDOW, fold, fold_segments, shrink
from holter.record.errors import HolterError
from holter.record.format import ABSENT, is_absent, record_dtype
from holter.record.segment import Segment, open_segments
from holter.record.signals import GRAD_NORM, LOSS

READING = st.sampled_from(
    [ABSENT, *np.array([np.nan, np.inf, -np.inf, 0, 1, -1, 3e38, 1e-45, 5], np.float32)]
)
OWNERS = tuple(f"layer.{i}" for i in range(20))


def records_of(columns: np.ndarray) -> np.ndarray:
    records = np.zeros(len(columns), record_dtype(columns.shape[1]))
    records["step"] = np.arange(len(columns))
    records["values"] = columns
    return records


def write_columns(path, count, *, spikes=(), segment_bytes=4096 * 4, stream_bytes=4096 * 20):
    writer = Writer(path, segment_bytes=segment_bytes, stream_bytes=stream_bytes)
    for step in range(count):
        values = np.full(len(OWNERS), 1 + step % 5, np.float32)
        if step in spikes:
            values[3] = spikes[step]
        writer.write("parameters", step, [("grad.norm", OWNERS, values)])
        writer.write("steps", step, [("loss", ("",), np.array([step], np.float32))])
    writer.close()


@given(st.lists(st.tuples(READING, READING), min_size=1, max_size=40))
@settings(max_examples=150, deadline=None)
def test_every_window_keeps_its_lowest_highest_nan_and_absence(columns):
    source = np.array(columns, np.float32)
    folded = fold(records_of(source))
    for start in range(0, len(source), WINDOW):
        window = source[start : start + WINDOW]
        inside = (folded["step"] >= start) & (folded["step"] < start + WINDOW)
        assert inside.sum() <= min(3, len(window))
        for column in range(2):
            kept = np.ascontiguousarray(folded["values"][inside][:, column])
            was = np.ascontiguousarray(window[:, column])
            kept, was = kept[~is_absent(kept)], was[~is_absent(was)]
            assert (len(kept) > 0) == (len(was) > 0)
            assert len(kept) <= len(was)
            assert np.isnan(kept).any() == np.isnan(was).any()
            kept, was = kept[~np.isnan(kept)], was[~np.isnan(was)]
            if len(was):
                assert (kept.min(), kept.max()) == (was.min(), was.max())


def test_extremes_stand_in_the_order_in_which_they_came():
    rising = np.arange(8, dtype=np.float32)
    folded = fold(records_of(np.stack([rising, rising[::-1]], axis=1)))
    assert folded["step"].tolist() == [0, 7]
    assert folded["values"].tolist() == [[0, 7], [7, 0]]


def test_disk_use_stays_bounded_and_no_spike_vanishes(tmp_path):
    spikes = {100: 1e6, 1003: np.nan, 2500: -1e6, 4000: np.inf}
    write_columns(tmp_path, 6000, spikes=spikes)
    files = list(tmp_path.glob("rank-0/parameters-*"))
    assert sum(file.stat().st_size for file in files) <= 4096 * 20 + 4096 * 4 + 200
    assert len(files) < 20
    assert verify(tmp_path) > 0
    series = Run.load(tmp_path)[GRAD_NORM]["layer.3"]
    assert {1e6, -1e6, np.inf} <= set(series.values.tolist())
    assert np.isnan(series.values).sum() == 1
    for step, value in spikes.items():
        at = np.flatnonzero(np.isnan(series.values) if np.isnan(value) else series.values == value)
        assert abs(series.steps[at[0]] - step) < 1500
    assert np.nanmin(series.values[:-1]) == -1e6
    assert series.last == 5999


def test_the_recent_past_keeps_full_rate_and_the_old_grows_coarser(tmp_path):
    write_columns(tmp_path, 6000)
    gaps = np.diff(Run.load(tmp_path)[GRAD_NORM]["layer.0"].steps)
    assert (gaps[-300:] == 1).all()
    assert gaps[:10].mean() > 8
    assert gaps[: len(gaps) // 2].mean() > gaps[len(gaps) // 2 :].mean()


def test_the_step_level_stream_is_whole_until_its_budget_is_spent(tmp_path):
    write_columns(tmp_path / "short", 2000)
    assert Run.load(tmp_path / "short")[LOSS][""].steps.tolist() == list(range(2000))
    write_columns(tmp_path / "long", 6000)
    files = (tmp_path / "long").glob("rank-0/steps-*")
    assert sum(file.stat().st_size for file in files) <= 4096 * 20 + 4096 * 4 + 200
    run = Run.load(tmp_path / "long")
    assert run.steps == 6000
    assert (np.diff(run[LOSS][""].steps[-1000:]) == 1).all()


def test_a_resumed_run_counts_what_was_there(tmp_path):
    write_columns(tmp_path, 700, stream_bytes=1 << 30)
    writer = Writer(tmp_path, resume=True, segment_bytes=4096 * 4, stream_bytes=4096 * 10)
    for step in range(700, 1000):
        writer.write("parameters", step, [("grad.norm", OWNERS, np.ones(20, np.float32))])
    writer.close()
    size = sum(file.stat().st_size for file in tmp_path.glob("rank-0/parameters-*"))
    assert size <= 4096 * 10 + 4096 * 4 + 200
    assert Run.load(tmp_path)[GRAD_NORM]["layer.0"].last == 999


def test_joined_segments_are_read_once_even_if_a_crash_left_the_second(tmp_path):
    write_columns(tmp_path, 600, stream_bytes=1 << 30)
    folder = tmp_path / "rank-0"
    first, second, *rest = open_segments(folder, "parameters")
    shutil.copy(second.path, tmp_path / "kept")
    expected = len(rest) and sum(len(each.records) for each in rest)
    joined = fold_segments([first, second])
    assert joined.through == second.index
    assert not second.path.exists()
    shutil.copy(tmp_path / "kept", second.path)
    assert [each.path for each in open_segments(folder, "parameters")] == [
        first.path,
        *(each.path for each in rest),
    ]
    series = Run.load(tmp_path)[GRAD_NORM]["layer.0"]
    assert len(series) == expected + len(joined.records)
    assert (np.diff(series.steps) > 0).all()


def test_a_resuming_writer_never_takes_the_number_of_a_joined_segment(tmp_path):
    write_columns(tmp_path, 600, stream_bytes=1 << 30)
    folder = tmp_path / "rank-0"
    open_segments(folder, "parameters")[-1].path.unlink()  # its header could not be written
    shrink(folder, "parameters", newest=10**6, budget=0)
    kept = open_segments(folder, "parameters")
    assert len(kept) == 2
    again = Writer(tmp_path, resume=True)
    again.write("parameters", 600, [("grad.norm", OWNERS, np.ones(20, np.float32))])
    again.close()
    assert Run.load(tmp_path)[GRAD_NORM]["layer.0"].last == 600


def test_damage_is_not_sealed_by_folding(tmp_path):
    write_columns(tmp_path, 300, stream_bytes=1 << 30)
    segment = open_segments(tmp_path / "rank-0", "parameters")[0]
    raw = bytearray(segment.path.read_bytes())
    raw[segment.header.size + 50] ^= 1
    segment.path.write_bytes(raw)
    damaged = Segment.open(segment.path)
    with pytest.raises(HolterError, match="damaged"):
        fold_segments([damaged])
    assert segment.path.read_bytes() == raw


def test_no_window_holds_steps_of_before_and_after_a_resume(tmp_path):
    for _ in range(3):  # each begins again at step 0
        writer = Writer(tmp_path, resume=True, segment_bytes=4096, stream_bytes=4096)
        for step in range(501):  # not a multiple of the window
            writer.write("steps", step, [("loss", ("",), np.array([step], np.float32))])
        writer.close()
    folder = tmp_path / "rank-0"
    shrink(folder, "steps", newest=10**6, budget=0)
    assert len(open_segments(folder, "steps")) == 2
    for segment in open_segments(folder, "steps"):
        assert (segment.records["values"][:, 0] == segment.records["step"]).all()


def test_steps_that_go_back_at_every_record_are_left_as_they_are(tmp_path):
    writer = Writer(tmp_path, segment_bytes=4096, stream_bytes=1 << 30)
    for step in range(500, 0, -1):
        writer.write("steps", step, [("loss", ("",), np.array([step], np.float32))])
    writer.close()
    shrink(tmp_path / "rank-0", "steps", newest=10**6, budget=0)
    assert len(Run.load(tmp_path)[LOSS][""]) == 500
