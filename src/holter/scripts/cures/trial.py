"""One run of an unmodified script in a process of its own: recorded, changed, ended early."""

import contextlib
import hashlib
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from holter.record import environment
from holter.record.errors import HolterError
from holter.record.trials import UNCHANGED, parts
from holter.scripts.observing import Observation
from holter.scripts.recognition.leaving import leave_process
from holter.scripts.recognition.redirecting import redirected
from holter.scripts.recognition.scratch import Scratch
from holter.scripts.running import AfterTorch, Script, find_module, find_script, report_end
from holter.scripts.seeding import shifted_seeds

if TYPE_CHECKING:
    from holter.lab.changes import TappedChange
    from holter.watching.collectors import Collector
    from holter.watching.collectors.lane import LightCollector
    from holter.watching.watch import Watch

RESULT = "trial.json"


class Attendant(Protocol):
    """Attends a trial: listens to the training, may end it, and leaves a file of its own."""

    def attend(self, watch: "Watch", end: Callable[[], NoReturn]) -> None:
        """Listen to the training that a watch records."""

    def close(self, folder: Path, error: BaseException | None) -> None:
        """Write what was seen, at the end of the trial."""


_IDLE = 8  # steps after which a change that has altered nothing is not tried any longer


@dataclass(frozen=True, slots=True)
class Command:
    """A script and its arguments."""

    script: str
    arguments: tuple[str, ...] = ()
    as_module: bool = False

    def find(self) -> Script:
        """Return the script, ready to run."""
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise HolterError(
                "A script is examined in a single process: start it without a launcher."
            )
        return find_module(self.script) if self.as_module else find_script(self.script)


@dataclass(frozen=True, slots=True)
class ScriptTrial:
    """What a process is to do: run a script under a change, and record it to a folder."""

    command: Command
    folder: Path  # absolute
    trial: str = UNCHANGED
    repeat: int = 0
    steps: int | None = None  # after which it ends; None for all
    whole: bool = False  # read every signal and keep a black box
    free: tuple[Path, ...] = ()  # folders that holter writes to
    probed: tuple[str, ...] = ()  # changes that are made together, to see what each alters
    threads: int | None = None  # of torch, where several trials share the cores
    attendant: Attendant | None = None


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a trial leaves in its folder beside the recording."""

    altered: Mapping[str, int]  # times that each change altered something
    steps: int
    start: float  # seconds until the first backward pass
    seconds: float


def run_trial(trial: ScriptTrial) -> int:
    """Run a trial in this process, which ends with it."""
    return _Trial(trial).run()


class _Trial:
    """The trial that this process is."""

    def __init__(self, trial: ScriptTrial) -> None:
        self._trial = trial
        self._observation: Observation | None = None
        self._watch: Watch | None = None
        self._change = contextlib.ExitStack()
        self._altered: Counter[str] = Counter()
        self._began, self._parent = time.monotonic(), os.getppid()
        self._first: float | None = None  # seconds until the first backward pass
        self._scratch: Scratch | None = None

    def run(self) -> int:
        trial = self._trial
        trial.folder.mkdir(parents=True, exist_ok=True)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        found = trial.command.find()
        own = [trial.folder, *trial.free]
        self._scratch = Scratch.over(Path.cwd(), Path(found.folder), free=own)
        with redirected(self._scratch) as redirect_torch:
            with shifted_seeds(trial.repeat) as seed_torch:

                def begin() -> None:
                    seed_torch()
                    self._begin(found, redirect_torch)

                waiting = AfterTorch(begin)
                if "torch" in sys.modules:
                    begin()
                else:
                    sys.meta_path.insert(0, waiting)
                error = found.run(trial.command.arguments)
            code = report_end(error)
            self._close(error, examine=code == 0)
        return code

    def _begin(self, found: Script, redirect_torch: Callable[[Any], None]) -> None:
        import torch

        from holter.lab.replay.unwatched import Unwatched
        from holter.watching import watch as watching
        from holter.watching.recorder import Recorder
        from holter.watching.taps import Tap

        trial, command = self._trial, self._trial.command
        redirect_torch(torch)
        if trial.threads is not None:
            torch.set_num_threads(trial.threads)
        watching.watch = Unwatched  # type: ignore[assignment]  # a script may record itself
        described = replace(
            environment.describe(),
            command=(found.argument, *command.arguments),
            script_digest=hashlib.sha256(found.source).hexdigest(),
            module=command.script if command.as_module else None,
        )
        recorder = Recorder(trial.folder, rank=0, environment=described)
        self._observation = Observation(
            found,
            recorder,
            afterwards=trial.whole,
            collectors=None if trial.whole else _few_collectors(),
            announce=False,
            black_box=trial.whole,
        )
        self._watch = self._observation.watch
        if trial.trial != UNCHANGED:
            from holter.lab.cures.library import change_named

            self._make(change_named(trial.trial), trial.trial)
        for name in trial.probed:
            from holter.lab.cures.library import change_named

            self._make(change_named(name), name)

        def around(original: Callable[..., Any]) -> Callable[..., Any]:
            def backward(*args: Any, **kwargs: Any) -> Any:
                if self._first is None:
                    self._first = time.monotonic() - self._began
                if self._is_over():
                    self._end()
                return original(*args, **kwargs)

            return backward

        Tap(torch.autograd, "backward", around)  # it stays until the process ends
        if trial.attendant is not None:
            trial.attendant.attend(self._watch, self._end)

    def _make(self, change: "TappedChange", name: str) -> None:
        self._change.enter_context(change.entered(lambda: self._altered.update((name,))))

    def _is_over(self) -> bool:
        assert self._watch is not None
        if os.getppid() != self._parent:  # which was killed: nobody waits for the result
            return True
        steps, limit = self._watch.steps, self._trial.steps
        if limit is not None and steps >= limit:
            return True
        return steps >= _IDLE and not self._altered and self._acts_from_the_start

    @property
    def _acts_from_the_start(self) -> bool:
        from holter.lab.cures.library import LATE

        names = parts(self._trial.trial)
        return self._trial.trial != UNCHANGED and not {name.kind for name in names} & LATE

    def _end(self) -> NoReturn:
        leave_process(lambda: self._close(None))

    def _close(self, error: BaseException | None, *, examine: bool = False) -> int:
        taken = time.monotonic() - self._began
        steps = 0
        if self._observation is not None:
            self._observation.conclude(source=self._trial.whole)
            self._observation.watch.close(error=error)
            steps = self._observation.watch.steps
            if examine and steps:
                self._observation.examine(taken)
        assert self._scratch is not None
        with self._scratch.aside():
            result = TrialResult(dict(self._altered), steps, self._first or taken, taken)
            (self._trial.folder / RESULT).write_text(json.dumps(asdict(result)))
            if self._trial.attendant is not None:
                self._trial.attendant.close(self._trial.folder, error)
        self._scratch.remove()
        return 0


def _few_collectors() -> "list[Collector | LightCollector]":
    """Return the collectors that tell how a training went: none that reads each parameter."""
    from holter.watching.collectors import all_collectors

    return [
        collector
        for collector in all_collectors()
        if all(signal.stream == "steps" for signal in collector.emits)
    ]


def result_in(folder: Path) -> TrialResult | None:
    """Return what a trial left in its folder, or None if it did not end by itself."""
    try:
        return TrialResult(**json.loads((folder / RESULT).read_text()))
    except (OSError, ValueError):
        return None


def folder_name(trial: str, repeat: int) -> str:
    """Return the folder of a trial inside the run."""
    words: Sequence[str] = "".join(c if c.isalnum() or c == "." else " " for c in trial).split()
    return f"cures/{'-'.join(words)}-{repeat}"
