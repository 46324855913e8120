"""`holter try replay RUN`: replay a captured failure to find its cause and its cure."""

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

from holter._cli.trust import trusted_command
from holter.record.errors import HolterError
from holter.record.notices import tell

if TYPE_CHECKING:
    from holter.lab.setup import Setup
    from holter.record import Run
    from holter.watching.blackbox.capture import Capture


def execute(args: argparse.Namespace, report: Callable[[Path], int]) -> int:
    """Replay the first capture of a run, on the script that recorded it or on the setup of --on."""
    from holter.record import Run
    from holter.record.folders import newest_run

    folder = Path(args.target) if args.target else newest_run()
    run = Run.load(folder)
    capture = _capture(folder, args.capture)
    tell(
        f"replaying {capture.alarm.says} at step {capture.alarm.step};"
        f" the capture holds {len(capture.steps)} steps"
    )
    if args.on:
        from holter.lab.setup_functions import setup_from

        _investigate(setup_from(args.on), run, capture, args)
        return report(folder)
    from holter.scripts.recognition import Recognised, recognise

    def then(recognised: Recognised) -> int:
        for note in recognised.notes:
            tell(note)
        drawn = dict(zip(recognised.steps, recognised.setup.train, strict=False)) if rerun else {}
        with contextlib.chdir(here):
            try:
                _investigate(recognised.setup, run, capture, args, drawn)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            return report(folder)

    script, *arguments = trusted_command(run, folder, trust=args.trust)
    module = run.meta.environment.module
    here, scratch = Path.cwd(), Path(tempfile.mkdtemp(prefix="holter-"))
    last = capture.steps[-1].step + 1
    # Without a loader only the script itself can produce the inputs of its steps.
    rerun = not any(step.fetches for step in capture.steps)
    if rerun:
        tell(f"no data loader was recorded: running {script} again up to step {last}")
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
                writes=[here / each for each in (folder, args.export, args.output) if each],
            )
    finally:  # reached only if the script is not recognised; otherwise the process has ended
        shutil.rmtree(scratch, ignore_errors=True)


def _capture(folder: Path, name: str | None) -> "Capture":
    from holter.watching.blackbox.capture import captures_in, load_capture

    captures = captures_in(folder)
    if not captures:
        raise HolterError(
            f"{folder} has no capture: no failure was detected, or the run was recorded with"
            " --no-black-box. `w.capture()` and `holter run --capture-at STEP` write one on demand."
        )
    if name is None:  # failures before captures on demand
        return load_capture(min(captures, key=lambda path: path.name.endswith("asked")))
    for path in captures:
        if path.name == name or path.name.startswith(f"step-{name.zfill(8)}"):
            return load_capture(path)
    raise HolterError(
        f"{folder} has no capture {name}; it has {', '.join(path.name for path in captures)}."
    )


@contextlib.contextmanager
def _in_folder(run: "Run") -> Iterator[None]:
    """Change to the folder in which the script ran: it may read files from there."""
    place = run.meta.environment.folder
    if place and Path(place).is_dir():
        os.chdir(place)  # for good: the script may end the process
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
    drawn: Mapping[int, Any] | None = None,
) -> None:
    from holter.lab.replay.investigating import whole
    from holter.lab.replay.window import FailureWindow
    from holter.lab.state import kept
    from holter.lab.writing import Lab

    assert run.path is not None
    window = FailureWindow(setup, capture, run, drawn=drawn)
    with Lab(run.path, quiet=False) as lab, kept(setup):
        try:
            for line in whole(window, lab, ladder=not args.no_ladder):
                tell(line)
        except KeyboardInterrupt:
            tell("interrupted; the results so far are kept")
        if args.export is not None:
            from holter.lab.replay.exporting import export

            tell(export(window, Path(args.export), synthetic=args.synthetic))
    sys.stdout.flush()
