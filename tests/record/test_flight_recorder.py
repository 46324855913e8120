"""Dumps of the flight recorder are read as data, and never executed."""

import json
import os
import pickle

import pytest

from holter.record.flight_recorder import FOLDER, Collective, last_collective, read_dump


def entry(number, *, state="completed", group="0", p2p=False):
    return {
        "frames": [
            {"name": "all_reduce", "filename": "/site/torch/distributed/c10d.py", "line": 5},
            {"name": "main", "filename": "/home/me/train.py", "line": 31},
        ],
        "process_group": (group, "default_pg"),
        "collective_seq_id": number,
        "profiling_name": "nccl:all_reduce",
        "state": state,
        "is_p2p": p2p,
    }


ENTRIES = [entry(1), entry(3, state="scheduled"), entry(2), entry(9, group="1"), entry(8, p2p=True)]


@pytest.mark.parametrize("encode", [pickle.dumps, lambda dump: json.dumps(dump).encode()])
def test_the_last_collective_of_the_default_group(tmp_path, encode):
    (tmp_path / "rank_0").write_bytes(encode({"version": "2.10", "entries": ENTRIES}))
    assert read_dump(tmp_path / "rank_0") == Collective(
        3, "nccl:all_reduce", is_completed=False, where="train.py:31"
    )


class Evil:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def test_a_pickle_that_would_execute_something_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rank_0").write_bytes(pickle.dumps({"entries": [Evil()]}))
    assert read_dump(tmp_path / "rank_0") is None
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\x80\x05", pickle.dumps([1]), pickle.dumps({"entries": [{}]})]
)
def test_what_is_no_dump_is_no_error(tmp_path, content):
    (tmp_path / "rank_0").write_bytes(content)
    assert read_dump(tmp_path / "rank_0") is None
    assert read_dump(tmp_path / "absent") is None


def test_dumps_are_found_in_the_run_and_by_the_recorded_prefix(tmp_path):
    dump = pickle.dumps({"entries": [entry(4)]})
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "nccl_trace_rank_11").write_bytes(dump)
    (tmp_path / "trace_1").write_bytes(pickle.dumps({"entries": [entry(5)]}))
    variables = {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "trace_")}
    assert last_collective(tmp_path, 11, {}).number == 4
    assert last_collective(tmp_path, 1, {}) is None
    assert last_collective(tmp_path, 1, variables).number == 5
