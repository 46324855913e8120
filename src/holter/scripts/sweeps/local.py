"""Tasks as processes of this machine."""

import math
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from queue import SimpleQueue

from holter.record.portable import end_group, usable_cores
from holter.scripts.sweeps.tasks import ATTEMPTS, State, Task

_GRACE = 5.0  # seconds in which a process that was asked to end does so


class Processes:
    """Workers that are processes; with `devices` each of them sees one of these GPUs."""

    def __init__(self, at_once: int, devices: Sequence[str] = ()) -> None:
        self.slots = at_once
        self._lock, self._processes = threading.Lock(), set[subprocess.Popen[bytes]]()
        self._stopped = False
        self._devices: SimpleQueue[str] = SimpleQueue()
        for place in range(at_once):
            self._devices.put(devices[place % len(devices)] if devices else "")
        cores = usable_cores()
        self._threads = str(max(1, cores // at_once)) if at_once > 1 else None

    def run(
        self, tasks: Sequence[Task], *, until: float = math.inf
    ) -> Generator[tuple[Task, State], None, None]:
        """Run tasks and yield each as it ends; an interrupt ends the processes."""
        self._stopped = False
        with ThreadPoolExecutor(self.slots) as pool:
            waiting = {pool.submit(self._run, task): task for task in tasks}
            try:
                while waiting and (left := until - time.monotonic()) > 0:
                    ended, _ = wait(
                        waiting,
                        timeout=None if math.isinf(left) else left,
                        return_when=FIRST_COMPLETED,
                    )
                    for future in ended:
                        yield waiting.pop(future), future.result()
            finally:
                for future in waiting:
                    future.cancel()
                self._stop()

    def _run(self, task: Task) -> State:
        """Run a task to its end; one whose process is killed begins again."""
        device = self._devices.get()
        try:
            for _ in range(ATTEMPTS):
                place = task.place()
                code, late = self._attempt(task, place / "run", device)
                state = State.MISSING if code < 0 else task.settle(place, code)
                shutil.rmtree(place, ignore_errors=True)
                if code >= 0 or late or self._stopped:
                    return state
        finally:
            self._devices.put(device)
        return State.MISSING

    def _stop(self) -> None:
        """End all processes, and begin no other."""
        with self._lock:
            self._stopped = True
            processes = list(self._processes)
        for process in processes:
            end_group(process.pid, now=False)
        for process in processes:
            end(process)

    def _attempt(self, task: Task, out: Path, device: str) -> tuple[int, bool]:
        """Run the command once; return its exit code, and whether its time was over."""
        with task.log.open("wb") as log:
            with self._lock:
                if self._stopped:
                    return -1, False
                process = start(task.words(out), log.fileno(), self._environment(device))
                self._processes.add(process)
            code, late = outcome(process, task.seconds)
            with self._lock:
                self._processes.discard(process)
        return code, late

    def _environment(self, device: str) -> dict[str, str]:
        given = dict(os.environ)
        if device:
            given["CUDA_VISIBLE_DEVICES"] = device
        if self._threads is not None:
            given.setdefault("OMP_NUM_THREADS", self._threads)
        return given


def start(
    words: Sequence[str], output: int, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, so that its children end with it."""
    return subprocess.Popen(  # noqa: S603  (the user's own command)
        list(words),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        start_new_session=True,
    )


def outcome(process: subprocess.Popen[bytes], seconds: float | None) -> tuple[int, bool]:
    """Wait for a process; return its exit code, negative if it was killed, and whether it is late.

    After so many seconds it is asked to end, and killed if it does not.
    """
    try:
        return process.wait(seconds), False
    except subprocess.TimeoutExpired:
        end_group(process.pid, now=False)
        return end(process), True


def end(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that was asked to end, kill it if it does not; return its exit code."""
    try:
        return process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        end_group(process.pid, now=True)
        return process.wait()
