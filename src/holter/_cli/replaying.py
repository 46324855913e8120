"""`holter try replay RUN`: a captured failure, run again to find its cause and what cures it."""

import argparse
import contextlib
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter.record.errors import HolterError
from holter.record.notices import tell

if TYPE_CHECKING:
    from holter.lab.setup import Setup
    from holter.record import Run
    from holter.watching.blackbox.capture import Capture


def execute(args: argparse.Namespace, report: Callable[[Path], int]) -> int:
    """Replay the first capture of a run, on the training of its own command or of --on."""
    from holter.record import Run
    from holter.record.folders import newest_run

    folder = Path(args.target) if args.target else newest_run()
    run = Run.load(folder)
    capture = _capture(folder, args.capture)
    tell(f"{capture.alarm.says} at step {capture.alarm.step}; {len(capture.steps)} steps are kept")
    if args.on:
        from holter.lab.functions import setup_from

        _investigate(setup_from(args.on), run, capture, args)
        return report(folder)
    from holter.scripts.recognition import Recognised, recognise

    def then(found: Recognised) -> int:
        for note in found.notes:
            tell(note)
        drawn = dict(zip(found.steps, found.setup.train, strict=False)) if rerun else {}
        with contextlib.chdir(here):
            try:
                _investigate(found.setup, run, capture, args, drawn)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            return report(folder)

    script, *arguments = _command(run, folder)
    module = run.meta.environment.module
    here, scratch = Path.cwd(), Path(tempfile.mkdtemp(prefix="holter-"))
    last = capture.steps[-1].step + 1
    # Without a loader only the script itself knows what its steps are given.
    rerun = not any(step.fetches for step in capture.steps)
    if rerun:
        tell(f"no loader feeds the steps: {script} is run again up to step {last}")
    try:
        with _in_folder(run), _unwatched():
            return recognise(
                module or script,
                arguments,
                as_module=bool(module),
                steps=last if rerun else 3 * len(capture.plain),
                seconds=math.inf if rerun else 600,
                last=len(capture.steps) if rerun else None,
                out=scratch / "first-steps",
                then=then,
            )
    finally:  # where the script is not recognised; otherwise the process has ended by now
        shutil.rmtree(scratch, ignore_errors=True)


def _capture(folder: Path, name: str | None) -> "Capture":
    from holter.watching.blackbox.capture import captures_in, load_capture

    found = captures_in(folder)
    if not found:
        raise HolterError(
            f"{folder} holds no capture: nothing broke while it was recorded, or the black box was"
            " off. `w.capture()` and `holter run --capture-at STEP` make one on purpose."
        )
    if name is None:  # what failed goes before what was asked for
        return load_capture(min(found, key=lambda each: each.name.endswith("asked")))
    for each in found:
        if each.name == name or each.name.startswith(f"step-{name.zfill(8)}"):
            return load_capture(each)
    raise HolterError(f"{folder} has no capture {name}; it has {', '.join(e.name for e in found)}.")


def _command(run: "Run", folder: Path) -> list[str]:
    command = list(run.meta.environment.command)
    if not command or not Path(run.meta.environment.folder or ".", command[0]).is_file():
        raise HolterError(
            f"{folder} does not say which script made it, or the script is gone: name a function"
            " that gives the training with `--on module:function`."
        )
    return command


@contextlib.contextmanager
def _in_folder(run: "Run") -> Iterator[None]:
    """Where the script was run: it may read files from there."""
    place = run.meta.environment.folder
    if place and Path(place).is_dir():
        os.chdir(place)  # for good: the script may end the process
    yield


@contextlib.contextmanager
def _unwatched() -> Iterator[None]:
    """A script that watches itself is not to record itself again."""
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
    drawn: Mapping[int, Any] | None = None,
) -> None:
    from holter.lab.lab import Lab
    from holter.lab.replay.investigating import whole
    from holter.lab.replay.window import Window
    from holter.lab.state import kept

    assert run.path is not None
    window = Window(setup, capture, run, drawn=drawn)
    with Lab(run.path, quiet=False) as lab, kept(setup):
        try:
            for line in whole(window, lab, ladder=not args.no_ladder):
                tell(line)
        except KeyboardInterrupt:
            tell("interrupted; what is known so far is kept")
        if args.export is not None:
            from holter.lab.replay.exporting import export

            tell(export(window, Path(args.export)))
    sys.stdout.flush()
