"""`holter rules`: list all rules."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holter._cli.terminal import text_width, wants_color
from holter.diagnosis.causes import explained_by

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.diagnosis.rule import Rule
    from holter.reports._lines import Line

EPILOG = """\
examples:
  holter rules
  holter rules --json
  holter explain RULE               the page of one rule
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "rules",
        help="list all rules",
        description="List all rules by level: data, architecture, procedure, hyperparameter,"
        "\nnumerics, system. Each with its severity, maturity, condition and required signals.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(args: argparse.Namespace) -> int:
    """Print the table."""
    from holter.diagnosis.engine import all_rules
    from holter.reports._lines import painted

    rules = sorted(all_rules().values(), key=lambda rule: (rule.level, rule.name))
    if args.json:
        print(json.dumps([as_fields(rule) for rule in rules], indent=2))
    else:
        table = _table(rules, text_width(sys.stdout))
        sys.stdout.write(painted(table, color=wants_color(sys.stdout)))
    return 0


def as_fields(rule: "Rule") -> dict[str, Any]:
    """Return the metadata of a rule for JSON."""
    return {
        "name": rule.name,
        "title": rule.title,
        "severity": str(rule.severity),
        "level": str(rule.level),
        "preview": rule.preview,
        "symptom": rule.symptom,
        "needs": [signal.name for signal in rule.needs],
        "explains": sorted(explained_by(rule.name)),
        "options": [
            {"name": name, "default": default, "doc": rule.option_docs[name]}
            for name, default in rule.options.items()
        ],
        "exceptions": [
            {"name": exception.name, "because": exception.because} for exception in rule.exceptions
        ],
    }


def _table(rules: Sequence["Rule"], width: int) -> list["Line"]:
    from holter.reports._lines import BLANK, hanging

    color = {"error": "red", "warning": "yellow", "info": "blue"}
    column = max((len(rule.name) for rule in rules), default=0) + 4
    lines: list[Line] = []
    level = ""
    for rule in rules:
        if str(rule.level) != level:
            level = str(rule.level)
            lines += [*([BLANK] if lines else []), ((level, "bold"),)]
        lead = (
            (f"  {rule.name}".ljust(column), ""),
            (f"{rule.severity}".ljust(9), color[str(rule.severity)]),
            ("preview  " if rule.preview else "stable   ", "magenta" if rule.preview else "dim"),
        )
        lines += hanging(rule.title, width=width, lead=lead)
        needs = f"needs {', '.join(signal.name for signal in rule.needs)}"
        lines += hanging(needs, width=width, lead=((" " * (column + 18), ""),), style="dim")
    return lines
