"""`holter try replay RUN`: replay a captured failure to find its cause and its cure."""

import argparse
import contextlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter._cli.shares import hand_out, is_shared, lab_of
from holter._cli.trust import recorded_in, trusted_command
from holter.record.errors import HolterError
from holter.record.notices import tell
from holter.scripts.sweeps.tasks import SENT

_PARTS = 4  # shares of the changes; each reproduces the failure first
_SHORT = 120.0  # seconds of a run that is repeated without being asked to
_HOW = ("--rerun", "--whole", "--origin", "--numbers")  # options that say how a failure is replayed
_CHANGES_SECONDS = 300.0  # in which changes are tried on whole runs of a script

if TYPE_CHECKING:
    from holter.lab.setup import Setup
    from holter.record import Run
    from holter.watching.blackbox.capture import Capture


def execute(args: argparse.Namespace, report: Callable[[Path], int]) -> int:
    """Replay the first capture of a run, on the script that recorded it or on that of --setup."""
    from holter.record import Run
    from holter.record.folders import newest_run

    folder = Path(args.target) if args.target else newest_run()
    run = Run.load(folder)
    capture = _capture(run, folder, args.capture)
    if is_shared(args):
        if not args.setup:
            trusted_command(run, folder, trust=args.trust)
        return hand_out(args, folder, _part(args), _PARTS, sent=folder)
    if not (args.origin or args.numbers):  # which go on with a replay
        tell(
            f"replaying {capture.alarm.says} at step {capture.alarm.step};"
            f" the capture holds {len(capture.steps)} steps"
        )

    def conclude() -> int:
        following = _following(run, folder, capture, args)
        if following is None:
            return report(folder)
        tell(f"no change cures it: replaying the next failure, {following}")
        return _start_again(f"--capture={following}", args)

    if args.whole or args.origin or args.numbers:
        _run_whole(run, capture, args, trusted_command(run, folder, trust=args.trust))
        return conclude()
    if args.setup:
        from holter.lab.setup_functions import setup_from

        _investigate(setup_from(args.setup), run, capture, args)
        return report(folder)
    return _on_script(run, capture, args, conclude)


def _on_script(
    run: "Run", capture: "Capture", args: argparse.Namespace, report: Callable[[], int]
) -> int:
    """Replay the step that is extracted from the script, or else the whole script."""
    from holter.scripts.recognition import Recognised, recognise

    assert run.path is not None
    folder = run.path

    def then(recognised: Recognised) -> int:
        for note in recognised.notes:
            tell(note)
        drawn = recognised.drawn if rerun else {}
        with contextlib.chdir(here):
            try:
                if rerun or recognised.setup.prepare is not None:
                    enough = _investigate(recognised.setup, run, capture, args, drawn, later=later)
                else:  # the steps are given more than the loader delivers
                    enough = False
            except HolterError as error:  # the captured state does not fit, or cannot be run
                return otherwise(error)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            option = "--whole" if rerun else "--rerun"
            if enough and _is_too_late(args, folder) and _is_short(run, capture):
                tell(f"running {script} from its start to find the fatal update")
                return _start_again("--whole", args)
            if enough and _has_origin(args, folder) and _is_short(run, capture):
                tell(f"running {script} again to find what produced the value")
                return _start_again("--origin", args)
            if enough and _may_be_moved(args, folder) and _is_short(run, capture):
                tell(f"running {script} again to see which of its numbers change")
                return _start_again("--numbers", args)
            if enough or (rerun and args.export):  # a whole run exports nothing
                return report()
            if _is_short(run, capture):
                tell(f"the failure was not reproduced: running {script} again")
                return _start_again(option, args)
            tell(f"the failure was not reproduced; {option} runs {script} again for more")
            return report()

    def otherwise(error: HolterError) -> int:
        with contextlib.chdir(here):
            if args.export or not _is_short(run, capture):
                raise error
            tell(str(error).partition("\n")[0])
            tell(f"running the whole of {script} again instead of its step")
            return _start_again("--whole", args)

    script, *arguments = trusted_command(run, folder, trust=args.trust)
    module = run.meta.environment.module
    here, scratch = Path.cwd(), Path(tempfile.mkdtemp(prefix="holter-"))
    later = _later(folder, capture)
    last = (capture if later is None else later).steps[-1].step + 1
    # Without a loader only the script itself can produce the inputs of its steps.
    fed = any(step.fetches for step in capture.steps)
    rerun = args.rerun or not fed
    if rerun:
        why = "" if fed else "no data loader was recorded: "
        tell(f"{why}running {script} again up to step {last}")
    try:
        with _in_folder(run), _unwatched():
            return recognise(
                module or script,
                arguments,
                as_module=bool(module),
                steps=last if rerun else 3 * len(capture.plain),
                seconds=math.inf if rerun else 600,
                last=last - capture.steps[0].step if rerun else None,
                out=scratch / "first-steps",
                then=then,
                otherwise=otherwise,
                writes=[
                    here / each for each in (folder, args.export, args.output, args.out) if each
                ],
            )
    finally:  # reached only if the script is not recognised; otherwise the process has ended
        shutil.rmtree(scratch, ignore_errors=True)


def _is_too_late(args: argparse.Namespace, folder: Path) -> bool:
    """Whether the captured steps begin after the update that spoiled the weights."""
    from holter.record import Run
    from holter.record.events import Reproduced

    if args.export or args.share is not None:
        return False
    replays = Run.load(folder).events_of(Reproduced)
    return bool(replays) and bool(replays[-1].what.fatal_before)


def _has_origin(args: argparse.Namespace, folder: Path) -> bool:
    """Whether a value that the replayed step was given, or found, was produced before it."""
    from holter.diagnosis.facts.replays import replayed
    from holter.record import Run

    if args.export or args.share is not None:
        return False
    replay = replayed(Run.load(folder))
    return (
        replay is not None
        and replay.is_reproduced
        and replay.birth is not None
        and replay.birth.has_origin
        and not replay.is_born_later
    )


def _may_be_moved(args: argparse.Namespace, folder: Path) -> bool:
    """Whether a number that the script changes may be the cause: nothing local cures."""
    from holter.diagnosis.facts.replays import fails, replayed
    from holter.record import Run

    if args.export or args.share is not None or args.no_ladder:
        return False
    replay = replayed(Run.load(folder))
    return replay is not None and fails(replay) and replay.all_tried and not replay.is_cured_locally


def _start_again(option: str, args: argparse.Namespace) -> int:
    """Replay in a process of its own: the script has left its traces in this one."""
    again = ["try", "replay", option, *(word for word in args.words if word not in _HOW)]
    return subprocess.call([sys.executable, "-m", "holter", *again])  # noqa: S603


def _run_whole(
    run: "Run", capture: "Capture", args: argparse.Namespace, command: Sequence[str]
) -> None:
    """Investigate by running the script from its start, again for each answer."""
    from holter.diagnosis.facts.replays import replayed
    from holter.lab.writing import Lab
    from holter.scripts.cures.trial import Command
    from holter.scripts.reruns.investigating import RerunInvestigation

    if args.export is not None:
        raise HolterError("--export needs the extracted step: leave --whole out.")
    assert run.path is not None
    path, module = run.path.absolute(), run.meta.environment.module
    script, *arguments = command
    again = Command(module or script, tuple(arguments), module is not None)
    here = Path.cwd()
    with Lab(path, quiet=False) as lab, _in_folder(run):
        try:
            found = RerunInvestigation(again, run, capture, lab, later=_later(path, capture))
            replay, ladder = replayed(run), not args.no_ladder
            if args.origin and replay is not None:
                told = found.find_origin(replay, ladder=ladder)
            elif args.numbers and replay is not None:
                told = found.hold_numbers(replay)
            else:
                told = found.investigate(seconds=_CHANGES_SECONDS, ladder=ladder)
            for line in told:
                tell(line)
        except KeyboardInterrupt:
            tell("interrupted; the results so far are kept")
        finally:
            os.chdir(here)


def _part(args: argparse.Namespace) -> list[str]:
    """Return the options and the run of a share: the changes that one process tries."""
    given = {"--capture": args.capture, "--setup": args.setup}
    options = [word for name, value in given.items() if value for word in (name, value)]
    return ["--trust", *(["--rerun"] if args.rerun else []), *options, SENT]


def _capture(run: "Run", folder: Path, name: str | None) -> "Capture":
    from holter.watching.blackbox.capture import captures_in, load_capture

    captures = captures_in(folder)
    if not captures:
        raise HolterError(f"{folder} has no capture: {_why_none(run)}")
    if name is None:  # failures before captures on demand
        return load_capture(_of_failure(run, captures))
    for path in captures:
        if path.name == name or path.name.startswith(f"step-{name.zfill(8)}"):
            return load_capture(path)
    raise HolterError(
        f"{folder} has no capture {name}; it has {', '.join(path.name for path in captures)}."
    )


def _of_failure(run: "Run", captures: Sequence[Path]) -> Path:
    """Return the first capture of a failure, or that of a value that ended a level course.

    A loss that rose before, and was level again when the training broke, did not break it.
    """
    from holter.diagnosis.facts.breaks import breaks_suddenly

    ends = [path for path in captures if path.name.partition("-rank-")[0].endswith("nonfinite")]
    if ends and breaks_suddenly(run):
        return ends[0]
    return min(captures, key=lambda path: path.name.endswith("asked"))


def _following(
    run: "Run", folder: Path, capture: "Capture", args: argparse.Namespace
) -> str | None:
    """Return the next captured failure, if no change cured this rise of the loss; else None.

    A loss may rise for a good reason long before the training fails.
    """
    from holter.diagnosis.facts.replays import fails, replayed
    from holter.record import Run
    from holter.watching.blackbox.capture import captures_in, load_capture

    asked = args.capture or args.export or args.no_ladder or args.share is not None
    if asked or capture.alarm.kind not in ("spike", "growth"):
        return None
    replay = replayed(Run.load(folder))
    if replay is None or not (replay.is_reproduced and fails(replay) and replay.all_tried):
        return None
    if replay.minimal_cure is not None:
        return None
    for path in captures_in(folder):
        other = load_capture(path)
        if other.alarm.step > capture.steps[-1].step and _is_short(run, other):
            return path.name
    return None


def _later(folder: Path, capture: "Capture") -> "Capture | None":
    """Return the capture of what is not finite after a loss left its course, if there is one."""
    from holter.watching.blackbox.capture import captures_in, load_capture

    if capture.alarm.kind not in ("spike", "growth", "descent"):
        return None
    others = [load_capture(path) for path in captures_in(folder) if path.name.endswith("nonfinite")]
    return next((each for each in others if each.alarm.step > capture.alarm.step), None)


def _why_none(run: "Run") -> str:
    """Say why a run has no capture: what its notes tell, or how it ended."""
    told = [note for note in run.meta.notes if "capture" in note or "black box" in note]
    if told:
        return " ".join(told)
    if run.meta.status in (None, "running"):
        return "it is still running, or was killed before a capture was written."
    return (
        "no failure was detected, or the run was recorded with --no-black-box. `w.capture()` and"
        " `holter run --capture-at STEP` write one on demand."
    )


@contextlib.contextmanager
def _in_folder(run: "Run") -> Iterator[None]:
    """Change to the folder in which the script ran: it may read files from there."""
    os.chdir(recorded_in(run))  # for good: the script may end the process
    yield


@contextlib.contextmanager
def _unwatched() -> Iterator[None]:
    """Disable `holter.watch` in the script, so that a replay records nothing."""
    from holter.lab.replay.unwatched import Unwatched
    from holter.watching import watch as watching

    before, watching.watch = watching.watch, Unwatched  # type: ignore[assignment]
    try:
        yield
    finally:
        watching.watch = before


def _investigate(
    setup: "Setup",
    run: "Run",
    capture: "Capture",
    args: argparse.Namespace,
    drawn: Mapping[int, Sequence[Any]] | None = None,
    *,
    later: "Capture | None" = None,
) -> bool:
    """Run the investigation; return whether that is all: it reproduced, or was interrupted."""
    from holter.diagnosis.facts.replays import replayed
    from holter.lab.replay.investigating import whole
    from holter.lab.replay.window import FailureWindow
    from holter.lab.state import kept
    from holter.record import Run

    assert run.path is not None
    window = FailureWindow(setup, capture, run, drawn=drawn)
    end = None if later is None else FailureWindow(setup, later, run, drawn=drawn)
    interrupted = False
    with lab_of(args, run.path) as lab, kept(setup):
        try:
            for line in whole(window, lab, ladder=not args.no_ladder, later=end):
                tell(line)
        except KeyboardInterrupt:
            interrupted = True
            tell("interrupted; the results so far are kept")
        if args.export is not None:
            from holter.lab.replay.exporting import export

            tell(export(window, Path(args.export), synthetic=args.synthetic))
    sys.stdout.flush()
    replay = replayed(Run.load(lab.path))
    return interrupted or (replay is not None and replay.is_reproduced)


def _is_short(run: "Run", capture: "Capture") -> bool:
    """Whether the script can be run again up to the failure without asking."""
    seconds, steps = run.meta.duration, max(run.steps, 1)
    return seconds is not None and seconds * capture.steps[-1].step / steps <= _SHORT
