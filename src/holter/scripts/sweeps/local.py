"""The runs of a sweep as processes of this machine."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from queue import SimpleQueue

from holter.record.portable import end_group, usable_cores
from holter.scripts.sweeps.plan import Job, State

ATTEMPTS = 3  # at a run whose process was killed
_GRACE = 5.0  # seconds in which a process that was asked to end does so
Done = Callable[[Job, State], None]


def run_locally(
    jobs: Sequence[Job], done: Done, *, at_once: int, devices: Sequence[str] = ()
) -> None:
    """Run jobs, several at a time; calls `done` for each as it ends.

    With `devices` each process sees one of these GPUs. An interrupt ends the processes; runs that
    are finished stay.
    """
    running = _Processes(at_once, devices)
    with ThreadPoolExecutor(at_once) as pool:
        waiting = {pool.submit(running.run, job): job for job in jobs}
        try:
            while waiting:
                ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for each in ended:
                    done(waiting.pop(each), each.result())
        except BaseException:
            running.stop()
            for each in waiting:
                each.cancel()
            raise


class _Processes:
    """The processes that run at a time."""

    def __init__(self, at_once: int, devices: Sequence[str]) -> None:
        self._lock, self._processes = threading.Lock(), set[subprocess.Popen[bytes]]()
        self._stopped = False
        self._devices: SimpleQueue[str] = SimpleQueue()
        for place in range(at_once):
            self._devices.put(devices[place % len(devices)] if devices else "")
        cores = usable_cores()
        self._threads = str(max(1, cores // at_once)) if at_once > 1 else None

    def run(self, job: Job) -> State:
        """Run a job to its end; one whose process is killed begins again."""
        device = self._devices.get()
        try:
            for _ in range(ATTEMPTS):
                place = job.place()
                code = self._attempt(job, place / "run", device)
                state = State.MISSING if code < 0 else job.settle(place, code)
                shutil.rmtree(place, ignore_errors=True)
                if code >= 0 or self._stopped:  # the script's own end, or the end of all
                    return state
        finally:
            self._devices.put(device)
        return State.MISSING

    def stop(self) -> None:
        """End all processes, and begin no other."""
        with self._lock:
            self._stopped = True
            processes = list(self._processes)
        for process in processes:
            end_group(process.pid, now=False)
        for process in processes:
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                end_group(process.pid, now=True)

    def _attempt(self, job: Job, out: Path, device: str) -> int:
        """Run the command once; return its exit code, negative if it was killed."""
        with job.log.open("wb") as log:
            with self._lock:
                if self._stopped:
                    return -1
                process = start(job.words(out), log.fileno(), self._environment(device))
                self._processes.add(process)
            code = process.wait()
            with self._lock:
                self._processes.discard(process)
        return code

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
