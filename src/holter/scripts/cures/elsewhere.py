"""Trials of a script handed out to workers, such as the nodes of a cluster."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from holter.lab.cures.searching import CureTrial, Pace
from holter.record.events import CureTried
from holter.scripts.cures.bench import ScriptBench, longest, tried
from holter.scripts.cures.trial import Command, ScriptTrial, folder_name, result_in, run_trial
from holter.scripts.recognition.leaving import leave_process
from holter.scripts.sweeps.tasks import OUT, State, Task, Workers, last_line

_FRESH = 30.0  # seconds that a process may need longer than one that is forked


class HandedOutBench:
    """Runs the trials of a script on workers; what tells its pace runs here."""

    def __init__(self, here: ScriptBench, command: Command, run: Path, workers: Workers) -> None:
        self._here, self._command, self._run = here, command, run
        self._workers = workers
        self.jobs = workers.slots

    @property
    def pace(self) -> Pace:
        """What a trial takes on this machine."""
        return self._here.pace

    def probe(self, trials: Sequence[str]) -> set[str] | None:
        """Make all changes at once for a few steps; return those with something to alter."""
        return self._here.probe(trials)

    def run(self, trials: Sequence[CureTrial], until: float) -> Iterator[CureTried]:
        """Run trials; those that have not ended in time are ended."""
        tasks = {self._task(trial): trial for trial in trials}
        with closing(self._workers.run(list(tasks), until=until)) as running:
            for task, state in running:
                result = result_in(task.folder)
                taken = 0.0 if result is None else result.seconds
                why = last_line(task.log) or f"the process ended ({state})"
                if state is State.MISSING:
                    why = "its process was lost or timed out"
                yield tried(tasks[task], self._run, taken, why)

    def _task(self, trial: CureTrial) -> Task:
        name = folder_name(trial.trial, trial.repeat)
        how = "module" if self._command.as_module else "script"
        wanted = (trial.trial, str(trial.repeat), str(trial.steps), how, self._command.script)
        return Task(
            f"{trial.trial}, repeat {trial.repeat}",
            ("-m", "holter.scripts.cures", OUT, *wanted, *self._command.arguments),
            self._run / name,
            seconds=_FRESH + longest(self.pace.seconds(trial.steps)),
        )


def run_handed_out(words: Sequence[str]) -> NoReturn:
    """Run the trial that a command describes, in this process, which ends with it."""
    out, name, repeat, steps, how, script, *arguments = words
    command = Command(script, tuple(arguments), how == "module")
    folder = Path(out).absolute()
    trial = ScriptTrial(command, folder, name, int(repeat), int(steps), free=(folder,))
    leave_process(lambda: run_trial(trial))
