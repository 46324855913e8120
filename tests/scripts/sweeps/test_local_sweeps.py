"""Runs of a sweep as processes: lost ones are retried, finished ones never run twice."""

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from quick import began, quick_tasks

from holter.record import Run
from holter.scripts.sweeps.local import Processes
from holter.scripts.sweeps.tasks import State, Task


def run(tasks: list[Task], at_once: int = 2) -> dict[int, State]:
    missing = [task for task in tasks if task.state() is not State.FINISHED]
    return {int(task.name): state for task, state in Processes(at_once).run(missing)}


def test_a_killed_process_begins_again_and_a_failed_script_does_not(tmp_path: Path) -> None:
    tasks = quick_tasks(tmp_path, 3)
    (tmp_path / "kill-1").touch()
    (tmp_path / "fail-2").touch()
    assert run(tasks) == {0: State.FINISHED, 1: State.FINISHED, 2: State.FAILED}
    assert sorted(began(tmp_path)) == [0, 1, 1, 2]
    assert "no data" in tasks[2].log.read_text()
    (tmp_path / "fail-2").unlink()  # the user fixes it and continues: only that one runs
    assert run(tasks) == {2: State.FINISHED}
    assert sorted(began(tmp_path)) == [0, 1, 1, 2, 2]
    assert run(tasks) == {}
    assert [Run.load(task.folder).steps for task in tasks] == [20, 20, 20]
    assert not list(tmp_path.glob("A/*.attempt-*"))


def test_an_interrupt_ends_the_processes_and_keeps_what_is_finished(tmp_path: Path) -> None:
    tasks = quick_tasks(tmp_path, 3)
    (tmp_path / "wait-1").touch()

    def interrupt() -> None:
        while tasks[0].state() is not State.FINISHED or 1 not in began(tmp_path):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run(tasks, at_once=1)
    assert [task.state() for task in tasks] == [State.FINISHED, State.MISSING, State.MISSING]
    (tmp_path / "wait-1").unlink()
    assert run(tasks) == {1: State.FINISHED, 2: State.FINISHED}
    assert began(tmp_path).count(0) == 1


def test_a_run_of_a_sweep_that_was_killed_itself_is_not_taken_for_finished(tmp_path: Path) -> None:
    (task,) = quick_tasks(tmp_path, 1)
    task.folder.mkdir(parents=True)
    (task.folder / "meta.json").write_text('{"format": 1, "status": "finished"}')
    assert task.state() is State.MISSING
    assert run([task]) == {0: State.FINISHED}


def test_a_task_is_ended_when_its_time_is_over(tmp_path: Path) -> None:
    (task,) = quick_tasks(tmp_path, 1)
    (tmp_path / "wait-0").touch()
    assert run([replace(task, seconds=0.5)]) == {0: State.MISSING}
    assert len(began(tmp_path)) <= 1  # no second attempt


def test_what_has_not_ended_in_time_is_ended(tmp_path: Path) -> None:
    tasks = quick_tasks(tmp_path, 2)
    (tmp_path / "wait-0").touch()
    assert list(Processes(1).run(tasks, until=time.monotonic() + 0.5)) == []
    assert [task.state() for task in tasks] == [State.MISSING, State.MISSING]


def test_processes_see_one_device_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    running = Processes(2, ["3", "5"])
    seen = [running._environment(running._devices.get())["CUDA_VISIBLE_DEVICES"] for _ in range(2)]
    assert seen == ["3", "5"]
    assert running._environment("3")["OMP_NUM_THREADS"].isdecimal()
