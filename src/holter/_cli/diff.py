"""`holter diff`: where two runs deviate, and what they were started with."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.record import Run

EPILOG = """\
examples:
  holter diff holter-runs/train-1 holter-runs/train-2
  holter diff A B --json                    for programs
  holter diff A B --all                     do not shorten lists

The report starts with the first step at which any signal differs in any bit, and lists all signals
that differ there in the order of a step: data, forward, backward, update. Then it lists the curves
that deviate by more than the noise between batches (`holter seeds` measures the noise between
seeds), and the differences in command line, settings, versions, machine, environment variables, git
commit and uncommitted changes. Times and memory are not compared. Works without torch.

exit codes:
  0  bitwise equal in everything that both recorded
  1  different
  2  usage error, or a folder that is not a run
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "diff",
        help="compare two runs: first difference, configuration, environment, code",
        description="Compare two recorded runs: the first step and signal at which they differ, and"
        "\nwhat differs in their configuration, environment and code.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("a", type=Path, metavar="A", help="folder of a run")
    parser.add_argument("b", type=Path, metavar="B", help="folder of the other run")
    parser.add_argument("--rank", type=int, metavar="N", help="rank to read (default: the lowest)")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--all", action="store_true", help="do not shorten lists")


def execute(args: argparse.Namespace) -> int:
    """Compare the runs and print the report."""
    from holter._cli.terminal import text_width, wants_color
    from holter.diagnosis.comparing.runs import compare
    from holter.record import Run
    from holter.reports.comparisons import diff

    a, b = (Run.load(path, rank=args.rank) for path in (args.a, args.b))
    comparison, files = compare(a, b), _changed_files(a, b)
    if args.json:
        sys.stdout.write(diff.render_json(comparison, files=files))
    else:
        sys.stdout.write(
            diff.render(
                comparison,
                files=files,
                width=text_width(sys.stdout),
                color=wants_color(sys.stdout),
                whole=args.all,
            )
        )
    return 0 if comparison.is_equal else 1


def _changed_files(a: "Run", b: "Run") -> list[str]:
    """Return what `git diff --stat` says of the commits of two runs."""
    from holter.record.environment import changed_between

    ours, theirs = a.meta.environment, b.meta.environment
    if ours.git is None or theirs.git is None or ours.git.commit == theirs.git.commit:
        return []
    return changed_between(ours.folder or ".", ours.git.commit, theirs.git.commit)
