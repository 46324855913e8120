"""`torchrun -m holter run`: every rank records into one run, and one of them reports."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from launched import SCRIPTS, Ended, environment, python

import holter
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, WEIGHT_HASH

RANKS = (0, 1)
TORCH_ABORTS = "terminate called without an active exception"  # at exit, rarely, also without us


def torchrun(*arguments: str | Path, cwd: Path) -> tuple[Ended, list[dict[str, object]]]:
    history = cwd.parent / f"{cwd.name}.json"
    options = ("--standalone", "--nproc-per-node", len(RANKS))
    for _ in range(3):
        shutil.rmtree(cwd, ignore_errors=True)
        cwd.mkdir()
        ended = python(
            *("-m", "torch.distributed.run", *map(str, options), *arguments),
            cwd=cwd,
            env=environment(HISTORY=str(history)),
        )
        if TORCH_ABORTS not in ended.err:
            break
    assert ended.code == 0, ended.err
    return ended, [json.loads(Path(f"{history}.{rank}").read_text()) for rank in RANKS]


@pytest.mark.skipif(sys.platform != "linux", reason="gloo and torchrun are tried on Linux")
@pytest.mark.parametrize("name", ["ddp.py", "fsdp.py"])
def test_two_ranks_record_into_one_run_and_one_reports(name: str, tmp_path: Path) -> None:
    script = SCRIPTS / name
    plain, plain_truths = torchrun(script, cwd=tmp_path / "plain")
    watched, truths = torchrun("-m", "holter", "run", script, cwd=tmp_path / "watched")
    assert watched.out == plain.out
    assert truths == plain_truths
    assert truths[0]["loss"] != truths[1]["loss"]

    (folder,) = (tmp_path / "watched" / "holter-runs").iterdir()
    assert sorted(each.name for each in folder.glob("rank-*")) == ["rank-0", "rank-1"]
    for rank, truth in zip(RANKS, truths, strict=True):
        run = holter.Run.load(folder, rank=rank)
        assert run.ranks == RANKS
        for signal, key in ((LOSS, "loss"), (GRAD_TOTAL_NORM, "grad_norm")):
            series = run[signal][""]
            assert series.steps.tolist() == list(range(40))
            np.testing.assert_allclose(series.values, truth[key], rtol=1e-4)
        assert run.meta.status == "finished"
        assert run.meta.notes == ()  # no collector had to give up
        checkup = holter.check(run)
        assert checkup.findings == ()
        clear = {verdict.rule for verdict in checkup.clear}
        assert clear >= {"missing-rank", "hung-rank", "rank-settings-apart", "same-data-on-ranks"}
        is_sharded = name == "fsdp.py"  # of which every rank holds other parameters
        assert (WEIGHT_HASH in run) is not is_sharded
        assert ({"diverged-ranks", "unreduced-gradients"} <= clear) is not is_sharded

    for said in (
        "holter: recording to",
        "no problem found",
        f"details: holter check {folder.name}",
    ):
        assert watched.err.replace("holter-runs/", "").count(said) == 1, watched.err
