"""`holter try cures`: repeat a training under one change at a time, and name what restores it."""

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.trust import trusted_command
from holter._cli.values import is_function, is_run
from holter._cli.workers import require_one_process, workers_of
from holter.record.notices import tell

if TYPE_CHECKING:
    from holter.lab.cures.setups import SetupBench
    from holter.record import Run
    from holter.scripts.cures.bench import ScriptBench
    from holter.scripts.cures.elsewhere import HandedOutBench
    from holter.scripts.cures.trial import Command

_TIMES = 9.0  # the time of the script that trials may take by default
_AT_LEAST = 90.0  # seconds
# Imported before processes are forked; the first optimizer imports torch._dynamo.
_IMPORTED_ONCE = (
    *("torch", "torch._dynamo", "torch.utils.data", "holter.diagnosis.engine"),
    *("holter.lab.cures.library", "holter.scripts.cures.trial", "holter.watching.watch"),
)
RUN_SHARE = 0.25  # share of `--minutes` after which the recorded run is ended


def execute(args: argparse.Namespace, report: Callable[[Path], int]) -> int:
    """Record the script, or take a recorded run, then try changes on it."""
    from holter.record import Run
    from holter.record.folders import new_folder, require_free

    seconds = None if args.minutes is None else 60.0 * args.minutes
    if is_function(args.target):
        require_one_process(args, "the trials of a setup run in one process; name a script.")
        return report(_on_setup(args, seconds))
    folder = Path(args.target)
    if is_run(args.target):
        command = command_of(Run.load(folder), folder, trust=args.trust)
    else:
        command = command_from(args)
        folder = args.out or new_folder(command.find().name)
        require_free(folder, 0)
    with bench_for(command, folder, args.jobs or 1) as bench:
        if folder.exists():
            taken = bench.known_pace(Run.load(folder))
        else:
            tell(f"running {command.script}; files that it writes are deleted at the end")
            taken = bench.record(seconds=None if seconds is None else RUN_SHARE * seconds)
        time_left = _time_for_trials(taken, seconds)
        if args.on == "local":
            search(bench, folder, time_left)
        else:
            _search_elsewhere(args, bench, command, folder.absolute(), time_left)
    return report(folder)


def _search_elsewhere(
    args: argparse.Namespace, here: "ScriptBench", command: "Command", run: Path, seconds: float
) -> None:
    from holter.scripts.cures.elsewhere import HandedOutBench

    with workers_of(args, run) as workers:
        search(HandedOutBench(here, command, run, workers), run, seconds)


def _time_for_trials(taken: float, given: float | None) -> float:
    return max(_TIMES * taken, _AT_LEAST) if given is None else max(given - taken, 0.0)


def _on_setup(args: argparse.Namespace, seconds: float | None) -> Path:
    from holter.lab.cures.setups import SetupBench
    from holter.lab.setup_functions import setup_from
    from holter.record.folders import new_folder, require_free

    folder: Path = args.out or new_folder("cures")
    require_free(folder, 0)
    bench = SetupBench(setup_from(args.target), folder)
    taken = bench.record(args.steps)
    search(bench, folder, _time_for_trials(taken, seconds))
    return folder


def search(
    bench: "ScriptBench | SetupBench | HandedOutBench", folder: Path, seconds: float
) -> None:
    """Try changes for so many seconds."""
    from holter.lab.cures.searching import Search
    from holter.lab.writing import Lab

    with Lab(folder, quiet=False) as lab:
        Search(bench, lab, bench.pace, seconds=seconds, tell=tell).search()


def bench_for(command: "Command", folder: Path, jobs: int) -> "ScriptBench":
    """Return where trials are run, after importing what every trial would have to import."""
    for name in _IMPORTED_ONCE:
        import_module(name)
    from holter.scripts.cures.bench import ScriptBench
    from holter.watching.collectors import all_collectors

    all_collectors()
    return ScriptBench(command, folder, jobs=jobs)


def command_from(args: argparse.Namespace) -> "Command":
    """Return the script and its arguments as they were given."""
    from holter.scripts.cures.trial import Command

    return Command(args.target, tuple(args.arguments), args.as_module)


def command_of(run: "Run", folder: Path, *, trust: bool) -> "Command":
    """Return the command that made a run, if its script may be executed."""
    from holter.scripts.cures.trial import Command

    script, *arguments = trusted_command(run, folder, trust=trust)
    module = run.meta.environment.module
    return Command(module or script, tuple(arguments), module is not None)
