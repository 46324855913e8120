"""`holter demo`: record and diagnose a broken training."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.terminal import write_report

if TYPE_CHECKING:
    from argparse import _SubParsersAction

SCRIPT = Path(__file__).parent.parent / "scripts" / "demo_training.py"


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "demo",
        help="record and diagnose a small broken training",
        description="Run a small classifier that learns nothing and raises no error under"
        " `holter run`,\nand show the diagnosis. Takes a few seconds on a CPU.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--show", action="store_true", help="print the script instead of running it"
    )


def execute(args: argparse.Namespace) -> int:
    """Run the broken script under `holter run`."""
    if args.show:
        print(SCRIPT.read_text(), end="")
        return 0
    from holter.diagnosis.engine import check
    from holter.record import Run
    from holter.record.folders import new_folder
    from holter.scripts.launching import launch

    print("$ holter run train.py        (the script: holter demo --show)\n", flush=True)
    outcome = launch(str(SCRIPT), out=new_folder("demo"))
    if outcome.path is None or outcome.exit_code:
        return outcome.exit_code or 2
    run = Run.load(outcome.path)
    sys.stdout.write("\n")
    write_report(run, check(run))
    return 0
