"""`holter run`: run an unmodified training script, record it, and diagnose it."""

import argparse
import math
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.options import EXIT_CODES, add_checking, check_and_report, settings_of
from holter._cli.script_arguments import add_script, tell_passed_on

if TYPE_CHECKING:
    from argparse import _SubParsersAction

EPILOG = f"""\
examples:
  holter run train.py --epochs 3                  everything after the script is passed to it
  holter run -m package.train --epochs 3          a module, like python -m
  holter run --out runs/first train.py            record to this folder
  holter run --fail-on never train.py             return the exit code of the script
  holter run --format json --output report.json train.py
  torchrun --nproc-per-node 2 -m holter run train.py
  git bisect run holter run train.py              find the commit that broke the training

The script runs as it does without holter: same arguments, working directory, output and traceback,
and bit-identical weights. The report goes to standard error.

{EXIT_CODES}  If the script fails, its own exit code is returned.
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "run",
        help="run an unmodified training script, record it, and diagnose it",
        description="Run an unmodified training script and record it: models, optimizers, losses"
        " and loaders\nare detected automatically. The recording is checked when the script ends.",
        epilog=EPILOG,
        usage="holter run [options] [-m] SCRIPT [script arguments ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_script(parser, "script")
    recording = parser.add_argument_group("recording")
    recording.add_argument(
        "--out",
        type=Path,
        metavar="RUN",
        help="folder to record to (default: a new one in ./holter-runs)",
    )
    recording.add_argument("--resume", action="store_true", help="append to the run in --out")
    recording.add_argument(
        "--budget",
        type=_budget,
        default=0.01,
        metavar="SHARE",
        help="maximum share of the training time for recording (default: 0.01, more at the"
        " beginning); `none` records everything at every step",
    )
    recording.add_argument(
        "--on-nonfinite",
        choices=("record", "skip", "raise", "stop"),
        default="record",
        help="when gradients are NaN or infinite: record it and continue (default), skip the step,"
        " or raise or stop before the weights change; all but `record` synchronise every step",
    )
    recording.add_argument(
        "--capture-at",
        type=int,
        metavar="STEP",
        help="write a capture at this step, as if it had failed, for `holter try replay`",
    )
    recording.add_argument(
        "--no-black-box",
        dest="black_box",
        action="store_false",
        help="do not keep the last steps and snapshots for replay",
    )
    recording.add_argument(
        "--reseed",
        type=int,
        metavar="N",
        help="train with different random numbers: shift every seed that the script sets; 0 keeps"
        " them and seeds the generators that the script does not (see `holter seeds`)",
    )
    recording.add_argument(
        "--silence",
        type=_seconds,
        metavar="SECONDS",
        help="in a process group: write the stack traces of a process that makes no progress for"
        " this long (default: 10 times its longest pause, at least 20)",
    )
    recording.add_argument(
        "--no-status",
        dest="status",
        action="store_false",
        help="do not show steps, loss and alerts in the terminal title",
    )
    recording.add_argument(
        "--no-samples",
        dest="samples",
        action="store_false",
        help="store no samples of the data: the black box writes no captures, and hashes are salted"
        " (for personal data)",
    )
    recording.add_argument(
        "--no-afterwards",
        dest="afterwards",
        action="store_false",
        help="after the script has ended, do not call the model again or read samples of the data"
        " sets (2 %% of its time for each, at least half a second, at most five)",
    )
    recording.add_argument(
        "--to",
        metavar="TRACKER",
        help="send signals, findings and the report to tensorboard, wandb, mlflow or trackio at the"
        " end",
    )
    recording.add_argument(
        "--no-check", action="store_true", help="only record; run `holter check` later"
    )
    add_checking(parser)


def execute(args: argparse.Namespace) -> int:
    """Run the script, then check the recording."""
    from holter.record import Run
    from holter.scripts.launching import launch

    settings = settings_of(args)
    tell_passed_on(args.script, args, as_module=args.as_module)
    send = None
    if args.to is not None:
        from holter.integrations.trackers import sender

        send = sender(args.to)
    outcome = launch(
        args.script,
        args.arguments,
        as_module=args.as_module,
        out=args.out,
        resume=args.resume,
        budget=args.budget,
        black_box=args.black_box,
        on_nonfinite=args.on_nonfinite,
        capture_at=args.capture_at,
        reseed=args.reseed,
        silence=args.silence,
        status=args.status,
        samples=args.samples,
        afterwards=args.afterwards,
    )
    code = 0
    if outcome.path is not None and os.environ.get("RANK", "0") == "0":
        sys.stdout.flush()
        if not args.no_check:
            code = check_and_report(Run.load(outcome.path), args, settings, stream=sys.stderr)
        if send is not None:
            send(outcome.path)
    # Die of SIGINT like Python does, so that a shell loop stops too.
    if outcome.interrupted and os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return outcome.exit_code or code


def _seconds(given: str) -> float:
    seconds = float(given)
    if not seconds > 0:
        raise argparse.ArgumentTypeError("must be a positive number of seconds")
    return seconds


def _budget(given: str) -> float | None:
    if given == "none":
        return None
    try:
        share = float(given)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(
            f"'{given}' is not a share between 0 and 1, such as 0.01, and not `none`"
        )
    return share
