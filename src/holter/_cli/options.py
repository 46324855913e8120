"""Arguments shared by every command that checks a run."""

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
  0  no finding at or above --fail-on
  1  at least one finding at or above --fail-on; preview rules do not count
  2  usage error, or something failed inside holter
"""


def add_checking(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select rules, the report and the exit code."""
    shown = parser.add_argument_group("report")
    shown.add_argument(
        "--format",
        choices=REPORTS,
        default="text",
        help="text (default), html (one page with curves and heat maps), checklist (the table of a"
        " preflight), json, github (workflow annotations) or sarif (code scanning)",
    )
    shown.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="same as --format json",
    )
    shown.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the report to FILE; an html report goes to RUN/report.html by default, unless"
        " standard output is redirected",
    )
    shown.add_argument(
        "--all",
        action="store_true",
        help="show everything: all findings and evidence, ruled-out causes, clear rules;"
        " do not truncate lists in the text report",
    )
    shown.add_argument(
        "--evidence",
        action="store_true",
        help="with --format json: include the readings behind each finding",
    )
    rules = parser.add_argument_group(
        "rules", "Command-line options override [tool.holter] in pyproject.toml."
    )
    rules.add_argument(
        "--select",
        action="append",
        metavar="PATTERN,...",
        help="apply only these rules, for example flat-loss,nonfinite-*; overrides `ignore` in"
        " pyproject.toml",
    )
    rules.add_argument("--ignore", action="append", metavar="PATTERN,...", help="skip these rules")
    rules.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="RULE.OPTION=VALUE",
        help="set an option of a rule; `holter explain RULE` lists them; may be repeated",
    )
    rules.add_argument(
        "--fail-on",
        choices=tuple(FAIL_ON),
        help="minimum severity for exit code 1 (default: error)",
    )


def settings_of(args: argparse.Namespace) -> Settings:
    """Return the settings from the arguments and pyproject.toml; call it before any long work."""
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
    """Check `run`, write the report to `stream` or standard output, and return the exit code."""
    from holter.diagnosis.checklist import exit_code, rows
    from holter.diagnosis.engine import check

    checkup = check(
        run, select=settings.select, ignore=settings.ignore, options=settings.rule_options
    )
    write_report(
        run,
        checkup,
        report=args.format,
        output=args.output,
        stream=stream,
        whole=args.all,
        readings=args.evidence,
    )
    shows_checks = args.format == "checklist" or (args.format == "json" and run.is_experiment)
    return exit_code(checkup, settings.fail_on, rows(run, checkup) if shows_checks else None)


def _split(given: list[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    return tuple(part.strip() for text in given for part in text.split(",") if part.strip())
