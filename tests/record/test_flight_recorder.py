"""Dumps of the flight recorder are read as data, and never executed."""

import json
import os
import pickle
import subprocess
import sys

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


# One process, one collective after the other, and what PyTorch itself dumps of them.
DUMPED = """\
import pathlib, pickle, sys, time
import torch
from torch import distributed as dist
from torch._C import _distributed_c10d as c10d
store = f"file://{sys.argv[1]}/store"
dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
for _ in range(3):
    dist.all_reduce(torch.ones(2))
for _ in range(300):  # another thread notes that a collective has ended, soon after it has
    dump = c10d._dump_fr_trace(True, True, False)
    if all(entry["state"] == "completed" for entry in pickle.loads(dump)["entries"]):
        break
    time.sleep(0.1)
pathlib.Path(sys.argv[1], "rank_0").write_bytes(dump)
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="gloo, tried on Linux")
def test_a_dump_by_pytorch_is_read(tmp_path):
    pytest.importorskip("torch.distributed")
    from torch._C import _distributed_c10d as c10d

    if not hasattr(c10d, "_dump_fr_trace"):
        pytest.skip("this torch records collectives of NCCL alone")
    script = tmp_path / "train.py"
    script.write_text(DUMPED)
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "100", "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, script, tmp_path], env=environment, check=True)
    assert read_dump(tmp_path / "rank_0") == Collective(
        3, "gloo:all_reduce", is_completed=True, where="train.py:8"
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
