"""Trials of a script in processes, forked from one that has imported torch."""

import math
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from holter.lab.cures.searching import CureTrial, Pace
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.events import CureTried
from holter.scripts.cures.apart import end, run_apart
from holter.scripts.cures.trial import (
    Command,
    ScriptTrial,
    TrialResult,
    folder_name,
    result_in,
    run_trial,
)
from holter.scripts.sweeps.tasks import last_line

_SLACK, _LEAST = 4.0, 20.0  # times its pace, and seconds, that a trial may take at least
_LATE = 1.5  # times its pace after which one is ended that is still running when time is over
_OUTPUT, _PROBE = "output.txt", "cures/probe"
_TELLING = 20  # steps that tell the pace


@dataclass(slots=True)
class _Running:
    process: BaseProcess
    trial: CureTrial
    folder: str
    began: float
    until: float


class ScriptBench:
    """Runs a script again and again, under changes, into folders of a run."""

    def __init__(self, command: Command, run: Path, *, jobs: int = 1) -> None:
        self._command, self._run = command, run.absolute()
        self.jobs = jobs
        self.pace = Pace(0.0, 0.0)
        self._place = Path(tempfile.mkdtemp(prefix="holter-"))
        # A fork costs next to nothing; where torch cannot be forked, each process imports it.
        self._context = (
            multiprocessing.get_context("fork")
            if sys.platform == "linux"
            else multiprocessing.get_context("spawn")
        )

    def close(self) -> None:
        """Remove the temporary files of all processes."""
        shutil.rmtree(self._place, ignore_errors=True)

    def __enter__(self) -> "ScriptBench":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def apart(self, name: str, function: Callable[..., int], *args: Any, seconds: float) -> str:
        """Call a function in a process for at most so many seconds; return why it failed, or ""."""
        output = self._run / f"{name}.txt"
        process = self._start(function, output, *args)
        process.join(seconds)
        late = process.is_alive()
        end(process)
        if late:
            return f"stopped after {seconds:.0f} s"
        return "" if process.exitcode in (0, 1) else last_line(output)

    def record(self, *, seconds: float | None = None) -> float:
        """Run the unchanged script, recorded whole, for at most so many seconds; return them."""
        began = time.monotonic()
        trial = ScriptTrial(self._command, self._run, whole=True, free=(self._run,))
        process = self._start(run_trial, None, trial)
        until = began + (seconds or math.inf)
        try:
            while process.is_alive() and time.monotonic() < until:
                wait([process.sentinel], timeout=0.2)
        finally:
            end(process)
        taken = time.monotonic() - began
        if not (self._run / "rank-0").is_dir():
            shutil.rmtree(self._run, ignore_errors=True)
            raise HolterError(
                f"{self._command.script} ended before importing torch: there is no training to"
                " examine."
            )
        self._learn(result_in(self._run), taken)
        return taken

    def known_pace(self, run: Run) -> float:
        """Take the pace from a recorded run; return the seconds that it took."""
        taken = run.meta.duration or 1.0
        self._learn(result_in(self._run), taken)
        if not self.pace.step:
            self.pace = Pace(2.0, taken / max(run.steps, 1))
        return taken

    def _learn(self, result: TrialResult | None, taken: float) -> None:
        """Learn the pace from a trial."""
        if result is None or result.steps < _TELLING:
            self.pace = self.pace if self.pace.start else Pace(taken, 0.0)
            return
        training = max(result.seconds - result.start, 0.0) / result.steps
        self.pace = Pace(taken - result.seconds + result.start, training)

    def probe(self, trials: Sequence[str]) -> set[str] | None:
        """Make all changes at once for a few steps; return those with something to alter."""
        path = self._run / _PROBE
        wanted = ScriptTrial(
            self._command, path, steps=_TELLING, free=(self._run,), probed=tuple(trials)
        )
        process = self._start(run_trial, path / _OUTPUT, wanted)
        process.join(_SLACK * self.pace.seconds(_TELLING) + _LEAST)
        end(process)
        result = result_in(path)
        shutil.rmtree(path, ignore_errors=True)
        if result is None or result.steps < _TELLING:
            return None
        return {name for name, count in result.altered.items() if count}

    def run(self, trials: Sequence[CureTrial], until: float) -> Iterator[CureTried]:
        """Run trials, as many at a time as there are jobs; begin none that would end too late."""
        waiting, running = list(trials), list[_Running]()
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    expected = self.pace.seconds(waiting[0].steps)
                    if time.monotonic() + expected > until:
                        waiting.clear()
                        break
                    running.append(self._begin(waiting.pop(0), expected, until))
                if not running:
                    return
                wait([each.process.sentinel for each in running], timeout=0.2)
                for each in list(running):
                    late = time.monotonic() > each.until
                    if each.process.is_alive() and not late:
                        continue
                    end(each.process)
                    running.remove(each)
                    yield self._done(each)
        finally:
            for each in running:
                end(each.process, now=True)

    def _begin(self, trial: CureTrial, expected: float, until: float) -> _Running:
        folder = folder_name(trial.trial, trial.repeat)
        path = self._run / folder
        shutil.rmtree(path, ignore_errors=True)
        wanted = ScriptTrial(
            self._command,
            path,
            trial.trial,
            trial.repeat,
            trial.steps,
            free=(self._run,),
            threads=None if self.jobs == 1 else max((os.cpu_count() or 1) // self.jobs, 1),
        )
        process = self._start(run_trial, path / _OUTPUT, wanted)
        now = time.monotonic()
        latest = max(until, now + _LATE * expected)  # so that a slow trial delays nothing else
        return _Running(process, trial, folder, now, min(now + longest(expected), latest))

    def _start(self, function: Callable[..., int], output: Path | None, *args: Any) -> BaseProcess:
        sys.stdout.flush()
        sys.stderr.flush()
        process = self._context.Process(
            target=run_apart, args=(function, self._place, output, *args)
        )
        process.start()
        return process

    def _done(self, running: _Running) -> CureTried:
        path = self._run / running.folder
        taken = time.monotonic() - running.began
        self._learn(result_in(path), taken)
        ended = f"the process ended with {running.process.exitcode}"
        return tried(running.trial, self._run, taken, last_line(path / _OUTPUT) or ended)


def longest(expected: float) -> float:
    """Return the seconds after which a trial is ended that was expected to take so many."""
    return max(_SLACK * expected, _LEAST)


def tried(trial: CureTrial, run: Path, seconds: float, why: str) -> CureTried:
    """Return what a trial in a folder of a run has shown, or why it failed."""
    folder = folder_name(trial.trial, trial.repeat)
    result = result_in(run / folder)
    return CureTried(
        trial.trial,
        trial.repeat,
        folder,
        trial.steps,
        seconds,
        0 if result is None else sum(result.altered.values()),
        why if result is None else "",
    )
