"""`holter doctor`: run a script, examine it, and prove the cause by repeating the training."""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.options import EXIT_CODES, add_checking, check_and_report, settings_of
from holter._cli.script_arguments import add_script, tell_passed_on
from holter._cli.values import positive, positive_whole
from holter.record.errors import NEEDS_TORCH, HolterError
from holter.record.notices import tell

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.record import Run
    from holter.scripts.cures.bench import ScriptBench
    from holter.scripts.cures.trial import Command

_TIMES = 9.0  # the script's own time that is taken by default; one more is for imports and report
_AT_LEAST = 30.0  # seconds that the examination of a short script may take
_PREFLIGHT = 0.3  # share of the time that is left for it after the run
_REPLAY = 0.3
_STEPS = 150  # that preflight records before its experiments
_PREFLIGHT_SECONDS = 10.0  # what preflight takes in most cases
_TRIALS_OF_FAILED, _TRIALS_OF_WEAK = 16, 8  # made in most cases

EPILOG = f"""\
examples:
  holter doctor train.py --epochs 3       everything after the script is passed to it
  holter doctor --minutes 5 train.py      take at most 5 minutes
  holter doctor -j 4 train.py             repeat the training in 4 processes at a time
  holter doctor --json train.py

The script runs once as it is and is recorded. Its training step is examined by the preflight
experiments. If the training broke, the failure is replayed; if it failed, or learned only a part,
the script runs again under one change at a time until it learns. Everything is stored in one run
folder: `holter check RUN` prints the same report again.

Files that the script writes go to a scratch folder, which is deleted at the end. By default doctor
takes at most ten times as long as the script itself, or {_AT_LEAST:.0f} s if that is longer.

{EXIT_CODES}"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "doctor",
        help="run a training script, examine it, and prove what is wrong with it",
        description="Run a training script, examine it, and prove what is wrong by an"
        " intervention:\npreflight, recorded run, replay and cures, with one diagnosis.",
        epilog=EPILOG,
        usage="holter doctor [options] [-m] SCRIPT [script arguments ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_script(parser, "target")
    depth = parser.add_argument_group("examination")
    depth.add_argument(
        "--minutes",
        type=positive,
        metavar="M",
        help=f"time for everything (default: ten times the script's own, at least"
        f" {_AT_LEAST:.0f} s)",
    )
    depth.add_argument(
        "-j",
        "--jobs",
        type=positive_whole,
        default=1,
        metavar="N",
        help="trials at a time (default: 1)",
    )
    depth.add_argument(
        "--out", type=Path, metavar="RUN", help="folder of the run (default: in ./holter-runs)"
    )
    add_checking(parser)


def execute(args: argparse.Namespace) -> int:
    """Examine the script, then report."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        raise HolterError(NEEDS_TORCH)
    settings = settings_of(args)
    tell_passed_on(args.target, args, as_module=args.as_module)
    from holter.record import Run

    path = _examined(args)
    return check_and_report(Run.load(path), args, settings)


@contextmanager
def _interruptible(path: Path) -> Iterator[None]:
    """Keep what is known at Ctrl-C: the report is about that."""
    try:
        yield
    except KeyboardInterrupt:
        if not (path / "meta.json").is_file():
            raise
        tell("interrupted; the report covers the results so far")


@dataclass(slots=True)
class _Clock:
    """The time that everything may take."""

    began: float
    seconds: float

    @property
    def left(self) -> float:
        return max(self.began + self.seconds - time.monotonic(), 0.0)


def _examined(args: argparse.Namespace) -> Path:
    """Record the script and examine it; return the run."""
    from holter._cli import curing
    from holter.record import Run
    from holter.record.folders import new_folder, require_free
    from holter.reports._facts import cost

    began = time.monotonic()
    command = curing.command_from(args)
    path: Path = args.out or new_folder(command.find().name)
    require_free(path, 0)
    limit = None if args.minutes is None else 60.0 * args.minutes
    most = f"ten times as long as the script, or {_AT_LEAST:.0f} s"
    most = most if limit is None else f"{limit:.0f} s"
    tell(f"examining {args.target}: at most {most}; files that it writes are deleted at the end")
    with curing.bench_for(command, path, args.jobs) as bench, _interruptible(path):
        loading = time.monotonic() - began  # which the script alone has to do as well
        taken = bench.record(seconds=None if limit is None else curing.RUN_SHARE * limit)
        run = Run.load(path)
        own = loading + taken - (cost(run).seconds or 0.0)  # without the recorder
        clock = _Clock(began, max(_TIMES * own, _AT_LEAST) if limit is None else limit)
        _stage("run", _summary(run), taken)
        if run.steps:
            _examine(bench, command, run, clock)
    return path


def _examine(bench: "ScriptBench", command: "Command", run: "Run", clock: _Clock) -> None:
    from holter._cli.examining import preflight, replay

    assert run.path is not None
    path, bad = run.path.absolute(), _is_bad(run)
    trials = _TRIALS_OF_FAILED if bad else _TRIALS_OF_WEAK if _is_weak(run) else 0
    expected = _estimate(bench, run, clock, trials)
    tell(f"estimated {expected:.0f} s more, at most {clock.left:.0f} s")

    def preflown() -> str:
        seconds = _PREFLIGHT * clock.left
        steps = min(run.steps, _STEPS)
        examine = partial(preflight, failed=bad)
        why = bench.apart("preflight", examine, command, path, steps, seconds / 2, seconds=seconds)
        return why or _preflight_summary(path)

    def replayed() -> str:
        return bench.apart("replay", replay, path, seconds=_REPLAY * clock.left) or "done"

    _timed("preflight", preflown)
    if any((path / "captures").glob("*")):
        _timed("replay", replayed)
    _timed("cures", lambda: _cured(bench, path, clock))


def _cured(bench: "ScriptBench", path: Path, clock: _Clock) -> str:
    from holter._cli import curing
    from holter.diagnosis.facts import Facts
    from holter.record import Run

    curing.search(bench, path, clock.left)
    cures = Facts(Run.load(path)).cures
    if cures is None or not cures.tried:
        return ""
    total = len(cures.tried) + len(cures.untried)
    tried = f"{len(cures.tried)} of {total} changes tried"
    found = cures.concluded
    if found is not None and found is cures.unrelated:
        return f"{tried}, shuffled labels are learned as well as the true ones"
    if cures.weak:
        return f"{tried}, {'none' if found is None else found.name} makes it learn far more"
    if not cures.failed:
        return tried
    return f"{tried}, {'none' if found is None else found.name} restores learning"


def _preflight_summary(path: Path) -> str:
    from collections import Counter

    from holter.diagnosis.checklist import rows
    from holter.diagnosis.engine import check
    from holter.record import Run

    run = Run.load(path)
    counts = Counter(str(row.status) for row in rows(run, check(run)))
    return ", ".join(f"{number} {status}" for status, number in counts.items())


def _is_bad(run: "Run") -> bool:
    from holter.diagnosis.facts import Facts
    from holter.diagnosis.facts.cures import is_poor, judged

    outcome = judged(Facts(run))
    return outcome is not None and is_poor(outcome)


def _is_weak(run: "Run") -> bool:
    from holter.diagnosis.facts import Facts
    from holter.diagnosis.facts.weak import is_weak

    return is_weak(Facts(run).run_outcome)


def _summary(run: "Run") -> str:
    from holter.diagnosis.facts import Facts

    outcome = Facts(run).run_outcome
    return f"{run.steps} steps, {outcome.title}: {outcome.says}"


def _estimate(bench: "ScriptBench", run: "Run", clock: _Clock, trials: int) -> float:
    """Return what the examination will take, by the pace of the run."""
    preflight = min(_PREFLIGHT_SECONDS + bench.pace.start, _PREFLIGHT * clock.left)
    cures = trials * bench.pace.seconds(run.steps) / bench.jobs
    return min(preflight + cures, clock.left)


def _timed(name: str, stage: Callable[[], str]) -> None:
    began = time.monotonic()
    if says := stage():
        _stage(name, says, time.monotonic() - began)


def _stage(name: str, says: str, seconds: float) -> None:
    tell(f"{name:<10} {says}  ({seconds:.0f} s)")
