"""`holter check`: diagnose a recorded run."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.options import EXIT_CODES, add_checking, check_and_report, settings_of
from holter.record.notices import tell

if TYPE_CHECKING:
    from argparse import _SubParsersAction

EPILOG = f"""\
examples:
  holter check                              the newest run in ./holter-runs
  holter check --all                        the same, with everything that was measured
  holter check holter-runs/train-1          a run by its folder, also while it is recorded
  holter check RUN --ignore "nonfinite-*"   skip some rules
  holter check RUN --set flat-loss.min_steps=50
  holter check RUN --format json --output report.json
  holter check RUN --fail-on warning        in CI: warnings give exit code 1

{EXIT_CODES}"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "check",
        help="diagnose a recorded run: cause, evidence, fix",
        description="Diagnose a recorded run: how the training went, the most likely cause of what"
        "\nis wrong, its evidence, and the fix. `--all` adds everything that was ruled out.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run",
        nargs="?",
        type=Path,
        metavar="RUN",
        help="folder of the run (default: the newest in ./holter-runs)",
    )
    parser.add_argument("--rank", type=int, metavar="N", help="rank to read (default: the lowest)")
    parser.add_argument(
        "--verify", action="store_true", help="verify the checksum of every record first"
    )
    add_checking(parser)


def execute(args: argparse.Namespace) -> int:
    """Check the run and print the report."""
    from holter.record import Run, verify
    from holter.record.folders import newest_run

    settings = settings_of(args)
    folder = args.run
    if folder is None:
        folder = newest_run()
        tell(f"checking the newest run, {folder}")
    run = Run.load(folder, rank=args.rank)
    if args.verify:
        tell(f"verified {verify(folder):,} records")
    return check_and_report(run, args, settings)
