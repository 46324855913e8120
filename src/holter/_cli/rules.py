"""`holter rules`: the table of all rules."""

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
  holter explain RULE               the page of one
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "rules",
        help="the table of all rules",
        description="Lists every rule by the level it looks at, in the order an engineer looks:"
        "\nhow severe it is, whether it is stable or in preview, and the signals it needs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def execute(args: argparse.Namespace) -> int:
    """Print the table."""
    from holter.diagnosis.engine import all_rules
    from holter.reports._lines import painted

    rules = sorted(all_rules().values(), key=lambda each: (each.level, each.name))
    if args.json:
        print(json.dumps([as_fields(each) for each in rules], indent=2))
    else:
        table = _table(rules, text_width(sys.stdout))
        sys.stdout.write(painted(table, color=wants_color(sys.stdout)))
    return 0


def as_fields(rule: "Rule") -> dict[str, Any]:
    """What is known of a rule, as JSON has it."""
    return {
        "name": rule.name,
        "title": rule.title,
        "severity": str(rule.severity),
        "level": str(rule.level),
        "preview": rule.preview,
        "symptom": rule.symptom,
        "needs": [signal.name for signal in rule.needs],
        "explains": sorted(explained_by(rule.name)),
        "options": rule.options,
    }


def _table(rules: Sequence["Rule"], width: int) -> list["Line"]:
    from holter.reports._lines import BLANK, hanging

    color = {"error": "red", "warning": "yellow", "info": "blue"}
    column = max((len(each.name) for each in rules), default=0) + 4
    lines: list[Line] = []
    level = ""
    for each in rules:
        if str(each.level) != level:
            level = str(each.level)
            lines += [*([BLANK] if lines else []), ((level, "bold"),)]
        lead = (
            (f"  {each.name}".ljust(column), ""),
            (f"{each.severity}".ljust(9), color[str(each.severity)]),
            ("preview  " if each.preview else "stable   ", "magenta" if each.preview else "dim"),
        )
        lines += hanging(each.title, width=width, lead=lead)
        needs = f"needs {', '.join(signal.name for signal in each.needs)}"
        lines += hanging(needs, width=width, lead=((" " * (column + 18), ""),), style="dim")
    return lines
