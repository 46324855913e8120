"""Scripts run plainly and under `holter run`, each as a user would start it."""

import fcntl
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

SCRIPTS = Path(__file__).parent / "ordinary"
CASES = Path(__file__).parent.parent.parent / "cases"
HOLTER = ("-m", "holter")
_SAMPLING = (
    "import sys; from holter._cli import main; from holter.watching import budget;"
    " budget.ALLOWANCE = 0.0; budget._FIRST = 4; sys.exit(main(sys.argv[1:]))"
)
# How the steps of a run are read: all whole, or as those of a long run are, from the first on.
REGIMES = {
    "whole": (*HOLTER, "run", "--budget", "none"),
    "sampled": (
        "-c",
        _SAMPLING,
        "run",
    ),
}
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code (minus the signal that killed it) and what it wrote."""

    code: int
    out: bytes
    err: str


@dataclass(frozen=True, slots=True)
class Twins:
    """One script, run plainly and watched, with what each says of its own training."""

    plain: Ended
    watched: Ended
    truth: dict[str, Any]
    watched_truth: dict[str, Any]
    run: Path


def environment(**changes: str) -> dict[str, str]:
    """The environment of a plain user; of one thread, for the tests share their cores."""
    unset = ("HISTORY", "RANK", "WORLD_SIZE", "NO_COLOR", "FORCE_COLOR", "HOLTER_DEBUG")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **changes}


def python(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 120
) -> Ended:
    """Run this Python with arguments, and wait."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment() if env is None else dict(env),
        capture_output=True,
        timeout=timeout,
        check=False,
        preexec_fn=_restore_interrupts,
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode())


def _restore_interrupts() -> None:
    """Undo what a background shell does: its children ignore SIGINT, and so would theirs."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def holter_run(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Ended:
    """`holter run` with arguments."""
    return python(*HOLTER, "run", *arguments, cwd=cwd, env=env)


def run_both(
    script: Path, arguments: tuple[str, ...], folder: Path, *, regime: str = "whole"
) -> Twins:
    """Run a script plainly and watched, side by side, in an empty folder each."""

    def run(name: str, *prefix: str | Path) -> tuple[Ended, dict[str, Any]]:
        here, history = folder / name, folder / f"{name}.json"
        here.mkdir(parents=True)
        env = environment(HISTORY=str(history), GIT_CEILING_DIRECTORIES=str(folder))
        ended = python(*prefix, script, *arguments, cwd=here, env=env)
        return ended, json.loads(history.read_text()) if history.exists() else {}

    with ThreadPoolExecutor() as threads:
        both = (
            threads.submit(run, "plain"),
            threads.submit(run, "watched", *REGIMES[regime], "--out", folder / "run"),
        )
        (plain, truth), (watched, watched_truth) = (each.result() for each in both)
    return Twins(plain, watched, truth, watched_truth, folder / "run")


def once(folder: Path, name: str, make: Callable[[Path], Made]) -> Made:
    """What `make` gives; made by one worker of pytest-xdist, and read by the others."""
    folder.mkdir(exist_ok=True)
    kept = folder / f"{name}.pickle"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make(folder / name)))
        made: Made = pickle.loads(kept.read_bytes())
        return made
