"""`holter check`: what is wrong with a recorded run, why, and what to do."""

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
  holter check holter-runs/train-1          a run by its folder; it may still be growing
  holter check RUN --ignore "nonfinite-*"   without some rules
  holter check RUN --set flat-loss.min_steps=50
  holter check RUN --format json --output report.json
  holter check RUN --fail-on warning        in CI: exit code 1 from warnings on

{EXIT_CODES}"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "check",
        help="what is wrong with a run, why, and what to do",
        description="Reads a recorded run and names the most likely cause of what is wrong with it:"
        "\nwith its evidence, what else it explains, what was ruled out, and the fix.",
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
    parser.add_argument("--rank", type=int, metavar="N", help="the rank to read (default: lowest)")
    parser.add_argument(
        "--verify", action="store_true", help="first test the checksum of every record"
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
        tell(f"the newest run is {folder}")
    run = Run.load(folder, rank=args.rank)
    if args.verify:
        tell(f"all {verify(folder):,} records are whole")
    return check_and_report(run, args, settings)
