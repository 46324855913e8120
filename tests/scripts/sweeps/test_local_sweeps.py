"""Runs of a sweep as processes: lost ones are retried, finished ones never run twice."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from quick import began, quick_jobs

from holter.record import Run
from holter.scripts.sweeps.local import run_locally
from holter.scripts.sweeps.plan import Job, State


def run(jobs: list[Job], at_once: int = 2) -> dict[int, State]:
    ended: dict[int, State] = {}
    missing = [job for job in jobs if job.state() is not State.FINISHED]
    run_locally(missing, lambda job, state: ended.update({job.seed: state}), at_once=at_once)
    return ended


def test_a_killed_process_begins_again_and_a_failed_script_does_not(tmp_path: Path) -> None:
    jobs = quick_jobs(tmp_path, 3)
    (tmp_path / "kill-1").touch()
    (tmp_path / "fail-2").touch()
    assert run(jobs) == {0: State.FINISHED, 1: State.FINISHED, 2: State.FAILED}
    assert sorted(began(tmp_path)) == [0, 1, 1, 2]
    assert "no data" in jobs[2].log.read_text()
    (tmp_path / "fail-2").unlink()  # the user fixes it and continues: only that one runs
    assert run(jobs) == {2: State.FINISHED}
    assert sorted(began(tmp_path)) == [0, 1, 1, 2, 2]
    assert run(jobs) == {}
    assert [Run.load(job.folder).steps for job in jobs] == [20, 20, 20]
    assert not list(tmp_path.glob("A/*.attempt-*"))


def test_an_interrupt_ends_the_processes_and_keeps_what_is_finished(tmp_path: Path) -> None:
    jobs = quick_jobs(tmp_path, 3)
    (tmp_path / "wait-1").touch()

    def interrupt() -> None:
        while jobs[0].state() is not State.FINISHED or 1 not in began(tmp_path):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run(jobs, at_once=1)
    assert [job.state() for job in jobs] == [State.FINISHED, State.MISSING, State.MISSING]
    (tmp_path / "wait-1").unlink()
    assert run(jobs) == {1: State.FINISHED, 2: State.FINISHED}
    assert began(tmp_path).count(0) == 1


def test_a_run_of_a_sweep_that_was_killed_itself_is_not_taken_for_finished(tmp_path: Path) -> None:
    (job,) = quick_jobs(tmp_path, 1)
    job.folder.mkdir(parents=True)
    (job.folder / "meta.json").write_text('{"format": 1, "status": "finished"}')
    assert job.state() is State.MISSING
    assert run([job]) == {0: State.FINISHED}


def test_processes_see_one_device_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holter.scripts.sweeps import local

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    running = local._Processes(2, ["3", "5"])
    seen = [running._environment(running._devices.get())["CUDA_VISIBLE_DEVICES"] for _ in range(2)]
    assert seen == ["3", "5"]
    assert running._environment("3")["OMP_NUM_THREADS"].isdecimal()
