"""`holter run`: runs an unmodified training script, records it, and says what is wrong."""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.options import EXIT_CODES, add_checking, check_and_report, settings_of

if TYPE_CHECKING:
    from argparse import _SubParsersAction

EPILOG = f"""\
examples:
  holter run train.py --epochs 3                  all that follows the script is the script's
  holter run -m package.train --epochs 3          a module, as with python -m
  holter run --out runs/first train.py            into a folder of your choice
  holter run --fail-on never train.py             leave the exit code to the script alone
  holter run --format json --output report.json train.py
  torchrun --nproc-per-node 2 -m holter run train.py
  git bisect run holter run train.py              find the commit that broke the training

The script runs as it would without holter: its arguments, working directory, output, traceback
and results are its own, bit for bit. The report goes to standard error.

{EXIT_CODES}  If the script itself fails, its own exit code is returned.
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "run",
        help="run a training script unmodified, record it, and say what is wrong",
        description="Runs a training script as it is. Finds its models, optimizers, losses and"
        " loaders by\nitself, records the training, and checks the recording when the script ends.",
        epilog=EPILOG,
        usage="holter run [options] [-m] SCRIPT [arguments of the script ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "script", metavar="SCRIPT", help="the script, or with -m the module, to run"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("-m", dest="as_module", action="store_true", help="SCRIPT names a module")
    recording = parser.add_argument_group("recording")
    recording.add_argument(
        "--out",
        type=Path,
        metavar="RUN",
        help="folder to record to (default: a new one in ./holter-runs)",
    )
    recording.add_argument("--resume", action="store_true", help="continue the run in --out")
    recording.add_argument(
        "--budget",
        type=_budget,
        default=0.01,
        metavar="SHARE",
        help="share of the training's time that watching may take (default: 0.01, after the first"
        " two seconds); `none` reads everything at every step",
    )
    recording.add_argument(
        "--on-nonfinite",
        choices=("record", "skip", "raise", "stop"),
        default="record",
        help="when gradients are not finite: go on and record it (default), skip the step, or end"
        " the training before weights are spoiled; all but record wait for each step's gradients",
    )
    recording.add_argument(
        "--capture-at",
        type=int,
        metavar="STEP",
        help="keep the steps up to this one, as if it had failed, for `holter try replay`",
    )
    recording.add_argument(
        "--no-black-box",
        dest="black_box",
        action="store_false",
        help="keep no copies of the last steps and the state",
    )
    recording.add_argument(
        "--no-check", action="store_true", help="only record; `holter check` can follow later"
    )
    add_checking(parser)


def execute(args: argparse.Namespace) -> int:
    """Run the script, then check what it left."""
    from holter.record import Run
    from holter.scripts.launching import launch

    settings = settings_of(args)
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
    )
    code = 0
    if outcome.path is not None and not args.no_check and os.environ.get("RANK", "0") == "0":
        sys.stdout.flush()
        code = check_and_report(Run.load(outcome.path), args, settings, stream=sys.stderr)
    if outcome.interrupted:  # end as Python ends on Ctrl-C, so that a shell loop stops too
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return outcome.exit_code or code


def _budget(given: str) -> float | None:
    if given == "none":
        return None
    share = float(given)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError("a share lies between 0 and 1, as in 0.01; or say none")
    return share
