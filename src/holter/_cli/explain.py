"""`holter explain`: print the page of a rule."""

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
        help="print the page of a rule: what it detects, how to fix it",
        description="Print the page of a rule: what it detects, why it matters, how to fix it, when"
        "\nit is wrong, how to confirm it, its options and its exceptions.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rule", metavar="RULE", help="name of a rule; `holter rules` lists them")
    parser.add_argument("--json", action="store_true", help="print JSON")


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
    lines += [*_options(rule, width), *_exceptions(rule, width)]
    related = {
        "Needs": [signal.name for signal in rule.needs],
        "Explains": sorted(explained_by(rule.name)),
        "Is explained by": _causes(rule),
    }
    for heading, names in related.items():
        if names:
            lines += [BLANK, ((heading, "bold"),)]
            lines += hanging(", ".join(names), width=width, lead=(("  ", ""),))
    return lines


def _options(rule: "Rule", width: int) -> list["Line"]:
    """Return the table of options: name, default, meaning."""
    from holter.reports._lines import BLANK, code_spans, hanging

    if not rule.options:
        return []
    name_width = max(map(len, rule.options)) + 2
    value_width = max(len(f"{value}") for value in rule.options.values()) + 2
    lines: list[Line] = [BLANK, (("Options", "bold"),)]
    for name, default in rule.options.items():
        lead = ((f"  {name:<{name_width}}", ""), (f"{default!s:<{value_width}}", "cyan"))
        lines += hanging(rule.option_docs[name], width=width, lead=lead)
    option, default = next(iter(rule.options.items()))
    usage = f"`--set {rule.name}.{option}={default}`"
    return [*lines, (("  change one with ", "dim"), *code_spans(usage))]


def _exceptions(rule: "Rule", width: int) -> list["Line"]:
    """Return the table of exceptions: name, and why the condition is harmless then."""
    from holter.reports._lines import BLANK, hanging

    if not rule.exceptions:
        return []
    column = max(len(exception.name) for exception in rule.exceptions) + 2
    lines: list[Line] = [BLANK, (("Exceptions", "bold"),)]
    for exception in rule.exceptions:
        lead = ((f"  {exception.name:<{column}}", ""),)
        lines += hanging(exception.because, width=width, lead=lead)
    return lines


def _causes(rule: "Rule") -> list[str]:
    from holter.diagnosis.engine import all_rules

    return [cause for cause in all_rules() if rule.name in explained_by(cause)]
