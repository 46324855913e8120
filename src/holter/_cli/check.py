"""`holter check`: diagnose a recorded run."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.options import EXIT_CODES, add_checking, check_and_report, settings_of
from holter.record.errors import HolterError
from holter.record.notices import tell

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.record import Run

EPILOG = f"""\
examples:
  holter check                              the newest run in ./holter-runs
  holter check --all                        the same, with everything that was measured
  holter check holter-runs/train-1          a run by its folder, also while it is recorded
  holter check RUN --ignore "nonfinite-*"   skip some rules
  holter check RUN --set flat-loss.min_steps=50
  holter check RUN --format json --output report.json
  holter check RUN --fail-on warning        in CI: warnings give exit code 1
  holter check runs/exp1                    a log of another tool: TensorBoard, W&B, MLflow,
                                            CSV, JSON lines, or what the training printed
  holter check train.log --map loss=my/loss the same, where a name is not recognised

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
        metavar="PATH",
        help="folder of the run, or a log of another tool (default: the newest run in"
        " ./holter-runs)",
    )
    parser.add_argument("--rank", type=int, metavar="N", help="rank to read (default: the lowest)")
    parser.add_argument(
        "--verify", action="store_true", help="verify the checksum of every record first"
    )
    parser.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON schema of --format json, and check nothing",
    )
    logs = parser.add_argument_group("logs of other tools")
    logs.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="SIGNAL=NAME",
        help="map a name in the log to loss, val_loss, accuracy, val_accuracy, lr or grad_norm; may"
        " be repeated",
    )
    logs.add_argument(
        "--save", type=Path, metavar="RUN", help="also write the imported run to the folder RUN"
    )
    add_checking(parser)


def execute(args: argparse.Namespace) -> int:
    """Check the run and print the report."""
    from holter.record import Run, verify
    from holter.record.folders import newest_run
    from holter.reports.json import json_schema

    if args.schema:
        print(json_schema(), end="")
        return 0
    settings = settings_of(args)
    folder = args.run
    if folder is None:
        folder = newest_run()
        tell(f"checking the newest run, {folder}")
    if is_log(folder, args):
        run = imported(folder, args.map, args.save)
    else:
        run = Run.load(folder, rank=args.rank)
        if args.verify:
            tell(f"verified {verify(folder):,} records")
    return check_and_report(run, args, settings)


def is_log(path: Path, args: argparse.Namespace) -> bool:
    """Return whether a path is a log of another tool; options of the other kind are refused."""
    from holter.imports import holds_log

    if not holds_log(path):
        if args.map or args.save is not None:
            raise HolterError(f"--map and --save are for logs of other tools; {path} is not one.")
        return False
    if args.verify or args.rank is not None:
        raise HolterError(f"--verify and --rank are for runs of holter; {path} is a log.")
    return True


def imported(path: Path, assignments: list[str], folder: Path | None) -> "Run":
    """Return the run that a log tells of, and say which names were mapped and ignored."""
    from holter.imports import import_log, parse_mapping, saved, summary

    run = import_log(path, parse_mapping(assignments))
    tell(summary(run))
    return run if folder is None else saved(run, folder)
