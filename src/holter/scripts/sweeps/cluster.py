"""Tasks on a Ray cluster.

A node runs the command in a copy of the working directory and sends the folder back, so nodes need
no shared disk; they need holter and what the script imports.
"""

import io
import logging
import math
import os
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

from holter.record.errors import HolterError
from holter.scripts.sweeps.local import outcome, start
from holter.scripts.sweeps.tasks import ATTEMPTS, State, Task, filled

_EXCLUDED = ["holter-runs", ".git", ".venv", "venv", "__pycache__", ".cache"]
_PASSED = ("OMP_NUM_THREADS", "PYTHONHASHSEED", "PYTHONPATH")  # from here to the nodes
_OWN = ("parts", "cures")  # folders of a run that no task reads


class RayWorkers:
    """A Ray cluster, connected while this context manager is entered.

    What lies in `output`, the folder that the tasks write to, is not copied to the nodes.
    """

    def __init__(self, output: Path, *, address: str | None, cpus: float, gpus: float) -> None:
        self._output, self._address, self._cpus, self._gpus = output, address, cpus, gpus
        self._ray: Any = None
        self._redirected = ExitStack()

    @property
    def slots(self) -> int:
        """How many tasks the cluster runs at a time."""
        there = self._ray.cluster_resources()
        kinds = (("CPU", self._cpus), ("GPU", self._gpus))
        return max(1, int(min(there.get(name, 0) / each for name, each in kinds if each)))

    def __enter__(self) -> "RayWorkers":
        try:
            import ray
        except ModuleNotFoundError:
            raise HolterError("--on ray needs Ray: pip install 'holter[ray]'.") from None
        if not self._cpus and not self._gpus:
            raise HolterError("--cpus 0 needs --gpus: a task must use some resource of a node.")
        here, excluded = Path.cwd(), [*_EXCLUDED]
        if self._output.absolute().is_relative_to(here):
            excluded.append(f"/{self._output.absolute().relative_to(here)}")
        self._redirected.enter_context(redirect_stdout(sys.stderr))  # Ray prints about its workers
        try:
            ray.init(
                address=self._address or os.environ.get("RAY_ADDRESS") or "auto",
                runtime_env={
                    "working_dir": str(here),
                    "excludes": excluded,
                    "env_vars": {n: os.environ[n] for n in _PASSED if n in os.environ},
                },
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            self._redirected.close()
            said = str(error).strip().partition("\n")[0]
            raise HolterError(
                f"Cannot use the Ray cluster: {said} Start one with `ray start --head`, or name it"
                " with --address."
            ) from error
        self._ray = ray
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()
        self._redirected.close()

    def run(
        self, tasks: Sequence[Task], *, until: float = math.inf
    ) -> Generator[tuple[Task, State], None, None]:
        """Run tasks and yield each as it ends; Ray begins one again whose node was lost."""
        ray = self._ray
        remote = ray.remote(_run_there).options(
            num_cpus=self._cpus, num_gpus=self._gpus, max_retries=ATTEMPTS - 1
        )
        archives = {sent: ray.put(_packed(sent)) for sent in {task.sent for task in tasks} if sent}
        pending = {
            remote.remote(
                [_portable(word) for word in task.command],
                archives[task.sent] if task.sent else None,
                task.seconds,
            ): task
            for task in tasks
        }
        try:
            while pending and time.monotonic() < until:
                ended, _ = ray.wait(list(pending), num_returns=1, timeout=1.0)
                for answer in ended:
                    task = pending.pop(answer)
                    yield task, _received(ray, answer, task)
        finally:
            for answer in pending:
                ray.cancel(answer, force=True)


def _portable(word: str) -> str:
    """Return a path below the working directory relative to it: a node has a copy elsewhere."""
    path = Path(word)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else word


def _packed(folder: Path) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as packed:
        for path in sorted(folder.iterdir()):
            if path.name not in _OWN:
                packed.add(path, f"run/{path.name}")
    return archive.getvalue()


def _unpack(archive: bytes, place: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(place, filter="data")


def _run_there(
    command: Sequence[str], sent: bytes | None, seconds: float | None
) -> tuple[int, bytes, bytes]:
    """Run a command on a node; return its exit code, its folder packed, and what it printed."""
    with tempfile.TemporaryDirectory() as place:
        out, log, given = Path(place, "run"), Path(place, "log"), Path(place, "sent")
        if sent is not None:
            _unpack(sent, given)
        with log.open("wb") as output:
            words = filled(command, out, given / "run")
            code, late = outcome(start(words, output.fileno(), dict(os.environ)), seconds)
        if code < 0 and not late:  # killed: Ray begins the task again if this process is lost
            os._exit(1)
        return code, _packed(out) if out.exists() else b"", log.read_bytes()


def _received(ray: Any, answer: Any, task: Task) -> State:
    """Unpack the folder that a node has sent."""
    place = task.place()
    try:
        code, archive, log = ray.get(answer)
        task.log.write_bytes(log)
        if archive:
            _unpack(archive, place)
        return task.settle(place, code)
    except ray.exceptions.RayError as error:
        task.log.write_text(f"lost on the cluster: {type(error).__name__}\n")
        return State.MISSING
    finally:
        shutil.rmtree(place, ignore_errors=True)
