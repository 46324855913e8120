"""An experiment handed out: shares of its trials run on workers, then one process concludes."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.workers import is_handed_out, workers_of
from holter.record.notices import tell

if TYPE_CHECKING:
    from holter.lab.writing import Lab

_PARTS = "parts"  # folder in the run


def is_shared(args: argparse.Namespace) -> bool:
    """Whether to hand the experiment out: not a share of it, nor what puts shares together."""
    return is_handed_out(args) and args.share is None and args.elsewhere is None


def hand_out(
    args: argparse.Namespace,
    run: Path,
    words: Sequence[str],
    count: int,
    *,
    sent: Path | None = None,
) -> int:
    """Run the shares of an experiment on workers, then the experiment with what they measured.

    Shares are kept in the run: those that are finished do not run again. What a lost share would
    have measured is measured in the end.
    """
    from holter.scripts.sweeps.tasks import OUT, State, Task, last_line

    folder = run.absolute() / _PARTS
    own = ("-m", "holter", "try", args.experiment)
    tasks = [
        Task(
            f"part {number + 1} of {count}",
            (*own, "--share", f"{number}/{count}", "--out", OUT, *words),
            folder / f"{number}-of-{count}",
            sent=None if sent is None else sent.absolute(),
        )
        for number in range(count)
    ]
    missing = [task for task in tasks if task.state() is not State.FINISHED]
    if missing:
        with workers_of(args, run) as workers, closing(workers.run(missing)) as running:
            tell(f"handing out {args.experiment}: {len(missing)} parts, {workers.slots} at a time")
            for task, state in running:
                why = "" if state is State.FINISHED else f": {last_line(task.log)}"
                tell(f"{task.name} {state}{why}")
    put = ["--elsewhere", str(folder), *([] if sent is not None else ["--out", str(run)])]
    whole = [sys.executable, *own, *put, *args.words]
    return subprocess.call(whole)  # noqa: S603  (the command that the user gave)


def lab_of(args: argparse.Namespace, path: Path) -> "Lab":
    """Open the run that the experiment writes to, with what other processes have measured."""
    from holter.lab.sharing import WHOLE, Share
    from holter.lab.writing import Lab
    from holter.record import Run
    from holter.scripts.sweeps.tasks import finished_in

    if args.share is not None:
        return Lab(args.out or path, share=Share.parse(args.share))
    parts = [] if args.elsewhere is None else finished_in(args.elsewhere)
    return Lab(path, quiet=False, share=WHOLE, elsewhere=[Run.load(part) for part in parts])
