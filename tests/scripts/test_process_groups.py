"""Four ranks under `holter run`: the rank that is faulty is named, and a healthy job is clear."""

import sys
from pathlib import Path

import pytest
from launched import Ended, holter_run

from holter import Run, check, diagnose
from holter.record.heartbeat import Activity
from holter.record.signals import WEIGHT_HASH

JOB = Path(__file__).parent / "ranks" / "job.py"
FAULTY, STEP = 2, 12
OF_RANKS = {
    *("diverged-ranks", "unreduced-gradients", "rank-settings-apart", "missing-rank", "hung-rank"),
    *("same-data-on-ranks", "unequal-batch-counts", "repeated-order"),
}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="gloo and fork, tried on Linux")


def job(fault: str, folder: Path, *, silence: int = 1) -> tuple[Ended, Run]:
    run = folder / "run"
    options = ("--silence", str(silence), "--no-check", "--out", run)
    ended = holter_run(*options, JOB, fault, run, cwd=folder)
    return ended, Run.load(run)


def leading(run: Run) -> tuple[str, str]:
    found = diagnose(check(run)).leading
    assert found is not None
    return found.rule, found.summary


def test_a_killed_rank_is_named(tmp_path: Path) -> None:
    ended, run = job("killed", tmp_path, silence=60)
    assert ended.code != 0
    rule, summary = leading(run)
    assert rule == "missing-rank"
    assert summary.startswith(f"rank {FAULTY} ended at step {STEP}")


def test_a_stalled_rank_is_named_with_its_line(tmp_path: Path) -> None:
    ended, run = job("stalled", tmp_path)
    assert ended.code == 0, ended.err
    assert ended.out == b"[12, 12, 12, 12]\n"  # read while it hung
    rule, summary = leading(run)
    line = next(n for n, text in enumerate(JOB.read_text().splitlines(), 1) if "sleep(36" in text)
    assert rule == "hung-rank"
    assert "ranks 0, 1 and 3 wait in backward" in summary
    assert f"rank {FAULTY} is in disturb at job.py:{line}" in summary
    stacks = (run.path / f"rank-{FAULTY}" / "stacks.txt").read_text()
    assert "time.sleep(3600)" in stacks


def test_a_diverged_rank_is_named_with_parameter_and_step(tmp_path: Path) -> None:
    ended, run = job("diverged", tmp_path)
    assert ended.code == 0, ended.err
    rule, summary = leading(run)
    assert rule == "diverged-ranks"
    assert f"0.bias of rank {FAULTY} differs at step {STEP}" in summary


def test_a_missing_set_epoch_is_seen_on_every_rank(tmp_path: Path) -> None:
    ended, run = job("repeated", tmp_path)
    assert ended.code == 0, ended.err
    for rank in run.ranks:
        (found,) = check(run.of_rank(rank)).findings
        assert found.rule == "repeated-order"
        assert "set_epoch" in found.fix


def test_a_healthy_job_is_clear(tmp_path: Path) -> None:
    ended, run = job("none", tmp_path)
    assert ended.code == 0, ended.err
    assert run.ranks == (0, 1, 2, 3)
    checkup = check(run)
    assert checkup.findings == ()
    assert {each.rule for each in checkup.clear} >= OF_RANKS
    for rank in run.ranks:
        other = run.of_rank(rank)
        assert other.meta.status == "finished"
        assert other.heartbeat.activity is Activity.UPDATED
        assert other[WEIGHT_HASH]["0.weight"].values.tolist() == (
            run[WEIGHT_HASH]["0.weight"].values.tolist()
        )
