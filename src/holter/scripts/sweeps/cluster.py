"""The runs of a sweep on a Ray cluster.

A node runs the command in a copy of the working directory and sends the run back, so nodes need no
shared disk; they need holter and what the script imports.
"""

import io
import logging
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from holter.record.errors import HolterError
from holter.scripts.sweeps.local import ATTEMPTS, Done, start
from holter.scripts.sweeps.plan import Job, State

_EXCLUDED = ["holter-runs", ".git", ".venv", "venv", "__pycache__", ".cache"]
_PASSED = ("OMP_NUM_THREADS", "PYTHONHASHSEED", "PYTHONPATH")  # from here to the nodes
_OUT = "\0out"  # stands for the folder of the run, which the node chooses


def run_on_ray(
    jobs: Sequence[Job],
    done: Done,
    *,
    address: str | None,
    cpus: float,
    gpus: float,
) -> None:
    """Run jobs on a Ray cluster; calls `done` for each as it ends.

    Ray begins a run again whose node or process was lost. An interrupt cancels what has not ended.
    """
    with redirect_stdout(sys.stderr):  # Ray prints what it has to say of its workers
        _run(_connected(address, jobs), jobs, done, cpus, gpus)


def _run(ray: Any, jobs: Sequence[Job], done: Done, cpus: float, gpus: float) -> None:
    try:
        task = ray.remote(_run_there).options(
            num_cpus=cpus, num_gpus=gpus, max_retries=ATTEMPTS - 1
        )
        pending = {task.remote(job.words(_OUT)): job for job in jobs}
        try:
            while pending:
                ended, _ = ray.wait(list(pending), num_returns=1, timeout=1.0)
                for each in ended:
                    job = pending.pop(each)
                    done(job, _received(ray, each, job))
        except BaseException:
            for each in pending:
                ray.cancel(each, force=True)
            raise
    finally:
        ray.shutdown()


def _connected(address: str | None, jobs: Sequence[Job]) -> Any:
    try:
        import ray
    except ModuleNotFoundError:
        raise HolterError("--on ray needs Ray: pip install 'holter[ray]'.") from None
    outside = {
        str(job.folder.parents[1].name)
        for job in jobs
        if job.folder.absolute().is_relative_to(Path.cwd())
    }
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    try:
        ray.init(
            address=address or os.environ.get("RAY_ADDRESS") or "auto",
            runtime_env={
                "working_dir": str(Path.cwd()),
                "excludes": [*_EXCLUDED, *sorted(outside)],
                "env_vars": passed,
            },
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        said = str(error).strip().partition("\n")[0]
        raise HolterError(
            f"Cannot use the Ray cluster: {said} Start one with `ray start --head`, or name it with"
            " --address."
        ) from error
    return ray


def _run_there(words: Sequence[str]) -> tuple[int, bytes, bytes]:
    """Run a command on a node; return its exit code, the run as an archive, and what it printed."""
    with tempfile.TemporaryDirectory() as place:
        out, log = Path(place, "run"), Path(place, "log")
        own = [sys.executable, *(str(out) if word == _OUT else word for word in words[1:])]
        with log.open("wb") as output:
            code = start(own, output.fileno(), dict(os.environ)).wait()
        if code < 0:  # killed: Ray begins the task again if this process is lost
            os._exit(1)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as packed:
            if out.exists():
                packed.add(out, "run")
        return code, archive.getvalue(), log.read_bytes()


def _received(ray: Any, answer: Any, job: Job) -> State:
    """Unpack the run that a node has sent."""
    place = job.place()
    try:
        code, archive, log = ray.get(answer)
        job.log.write_bytes(log)
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(place, filter="data")
        return job.settle(place, code)
    except ray.exceptions.RayError as error:
        job.log.write_text(f"lost on the cluster: {type(error).__name__}\n")
        return State.MISSING
    finally:
        shutil.rmtree(place, ignore_errors=True)
