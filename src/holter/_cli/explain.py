"""`holter explain`: the page of a rule."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from holter._cli.rules import as_fields
from holter._cli.terminal import text_width, wants_color
from holter.diagnosis.causes import explained_by

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.diagnosis.rule import Rule
    from holter.reports._lines import Line

EPILOG = """\
examples:
  holter explain nonfinite-loss
  holter explain nonfinite-loss --json
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "explain",
        help="the page of a rule: what it looks for, what to do",
        description="Prints the page of a rule: what it looks for, why it matters, what to do,"
        "\nwhen it is wrong, how to confirm it, and the options it has.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rule", metavar="RULE", help="name of a rule; `holter rules` lists them")
    parser.add_argument("--json", action="store_true", help="for programs")


def execute(args: argparse.Namespace) -> int:
    """Print the page."""
    from holter.diagnosis.engine import named_rule
    from holter.reports._lines import painted

    rule = named_rule(args.rule)
    if args.json:
        print(json.dumps({**as_fields(rule), "page": rule.doc}, indent=2))
    else:
        page = _page(rule, text_width(sys.stdout))
        sys.stdout.write(painted(page, color=wants_color(sys.stdout)))
    return 0


def _page(rule: "Rule", width: int) -> list["Line"]:
    from holter.reports._lines import BLANK, code_spans, hanging

    kind = f"{rule.severity}, {rule.level}, {'preview' if rule.preview else 'stable'}"
    lines: list[Line] = [((rule.name, "bold"), (f"  ({kind})", ""))]
    for line in rule.doc.splitlines():
        if line.startswith("## "):
            lines.append(((line.removeprefix("## "), "bold"),))
        else:
            lines.append((("  ", ""), *code_spans(line)))
    facts = {
        "Needs": [", ".join(signal.name for signal in rule.needs)],
        "Explains": [", ".join(sorted(explained_by(rule.name)))],
        "Is explained by": [", ".join(_causes(rule))],
        "Options": [f"{name} = {value!r}" for name, value in rule.options.items()],
    }
    for heading, items in facts.items():
        if any(items):
            lines += [BLANK, ((heading, "bold"),)]
        for item in filter(None, items):
            lines += hanging(item, width=width, lead=(("  ", ""),))
    if rule.options:
        option, value = next(iter(rule.options.items()))
        lines.append(
            (("  change one with ", "dim"), *code_spans(f"`--set {rule.name}.{option}={value}`"))
        )
    return lines


def _causes(rule: "Rule") -> list[str]:
    from holter.diagnosis.engine import all_rules

    return [each.name for each in all_rules().values() if rule.name in explained_by(each.name)]
