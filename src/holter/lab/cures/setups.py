"""Trials of a setup, in this process, from the same state and the same batches."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from holter.lab.cures.library import change_named
from holter.lab.cures.searching import CureTrial, Pace
from holter.lab.first_steps import record_first_steps
from holter.lab.randomness import seed_all
from holter.lab.setup import Setup
from holter.lab.state import kept
from holter.record.events import CureTried
from holter.record.trials import UNCHANGED

_FEW = 8  # steps that tell whether a change alters anything


class SetupBench:
    """Trains a setup again and again, under changes, into folders of a run."""

    jobs = 1

    def __init__(self, setup: Setup, run: Path) -> None:
        self._setup, self._run = setup, run
        self.pace = Pace(0.0, 0.0)

    def record(self, steps: int) -> float:
        """Record the unchanged training; return the seconds that it took."""
        began = time.monotonic()
        record_first_steps(self._setup, self._run, steps)
        taken = time.monotonic() - began
        self.pace = Pace(0.0, taken / max(steps, 1))
        return taken

    def probe(self, trials: Sequence[str]) -> set[str]:
        """Make all changes at once for a few steps; return those with something to alter."""
        altered: Counter[str] = Counter()
        with self._setup.aside(), kept(self._setup), ExitStack() as stack:
            for name in trials:
                change = change_named(name)
                stack.enter_context(change.entered(lambda name=name: altered.update((name,))))  # type: ignore[misc]
            batches = self._setup.endless()
            for _ in range(_FEW):
                self._setup.step(*(next(batches) for _ in range(self._setup.accumulation)))
        return set(altered)

    def run(self, trials: Sequence[CureTrial], until: float) -> Iterator[CureTried]:
        """Run trials one after another; begin none that would end too late."""
        for number, trial in enumerate(trials):
            if time.monotonic() + self.pace.seconds(trial.steps) > until:
                return
            yield self._tried(trial, number)

    def _tried(self, trial: CureTrial, number: int) -> CureTried:
        began, altered, failed = time.monotonic(), Counter[str](), ""
        folder = f"cures/{len(list((self._run / 'cures').glob('*')))}-{number}"
        with self._setup.aside(), kept(self._setup), ExitStack() as stack:
            if trial.trial != UNCHANGED:
                change = change_named(trial.trial)
                stack.enter_context(change.entered(lambda: altered.update(("",))))
            if trial.repeat:
                seed_all(self._setup, trial.repeat)
            try:
                record_first_steps(self._setup, self._run / folder, trial.steps)
            except Exception as error:
                failed = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        seconds = time.monotonic() - began
        return CureTried(
            trial.trial, trial.repeat, folder, trial.steps, seconds, altered[""], failed
        )
