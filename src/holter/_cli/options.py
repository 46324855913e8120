"""The arguments that every command that checks a run shares, and what comes of them."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from holter._cli.settings import FAIL_ON, Settings, read_settings
from holter._cli.terminal import write_report
from holter.reports import REPORTS

if TYPE_CHECKING:
    from holter.record import Run

EXIT_CODES = """\
exit codes:
  0  nothing of stable rules at or above --fail-on
  1  something was found; findings of preview rules never count
  2  wrong use, or an error
"""


def add_checking(parser: argparse.ArgumentParser) -> None:
    """Add what is to be examined, how it is shown, and what fails."""
    shown = parser.add_argument_group("report")
    shown.add_argument(
        "--format",
        choices=REPORTS,
        default="text",
        help="text for people (default), checklist for a preflight, json for programs,"
        " github for annotations of a workflow,"
        " sarif for code scanning",
    )
    shown.add_argument("--output", type=Path, metavar="FILE", help="write the report to FILE")
    shown.add_argument(
        "--all", action="store_true", help="show long lists whole in the report for people"
    )
    rules = parser.add_argument_group(
        "rules", "Defaults come from [tool.holter] of pyproject.toml; what stands here goes first."
    )
    rules.add_argument(
        "--select",
        action="append",
        metavar="PATTERN,...",
        help="examine only these rules, as in flat-loss,nonfinite-*; sets aside what"
        " pyproject.toml ignores",
    )
    rules.add_argument(
        "--ignore", action="append", metavar="PATTERN,...", help="leave these rules out"
    )
    rules.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="RULE.OPTION=VALUE",
        help="change a threshold, as `holter explain RULE` lists them; may be repeated",
    )
    rules.add_argument(
        "--fail-on",
        choices=tuple(FAIL_ON),
        help="least severity that gives exit code 1 (default: error)",
    )


def settings_of(args: argparse.Namespace) -> Settings:
    """What the arguments and pyproject.toml ask for. Read it before any long work."""
    return read_settings(
        Path.cwd(),
        select=_split(args.select),
        ignore=_split(args.ignore),
        assignments=args.set,
        fail_on=args.fail_on,
    )


def check_and_report(
    run: "Run", args: argparse.Namespace, settings: Settings, *, stream: TextIO | None = None
) -> int:
    """Check `run`, report as asked (to `stream`, else standard output), give the exit code."""
    from holter.diagnosis.engine import check

    checkup = check(
        run, select=settings.select, ignore=settings.ignore, options=settings.rule_options
    )
    write_report(
        run, checkup, report=args.format, output=args.output, stream=stream, whole=args.all
    )
    fails = settings.fail_on is not None and checkup.at_least(settings.fail_on)
    return 1 if fails else 0


def _split(given: list[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    return tuple(part.strip() for each in given for part in each.split(",") if part.strip())
