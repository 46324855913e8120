"""`holter schedule`: plot a learning-rate schedule."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.terminal import text_width, wants_color
from holter.record.errors import HolterError
from holter.record.notices import tell

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.reports._lines import Line

Share = Callable[[int], float]  # step -> fraction of the peak

_POINTS = 400  # of a curve

EPILOG = """\
examples:
  holter schedule warmup-cosine --peak 3e-4 --warmup 500 --steps 10000
  holter schedule warmup-cosine --peak 3e-4 --warmup 500 --steps 10000 --floor 0.1 --plot lr.png
  holter schedule one-cycle --peak 0.1 --steps 3000 --json

In a script, call `schedule.step()` after each `optimizer.step()`:
  schedule = holter.warmup_cosine(optimizer, warmup=500, steps=10000, floor=0.1)
  schedule = holter.one_cycle(optimizer, peak=0.1, steps=3000)
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "schedule",
        help="plot a learning-rate schedule",
        description="Plot a built-in learning-rate schedule and print the rate at key steps."
        "\nSteps are optimizer steps, not epochs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "kind", choices=("warmup-cosine", "one-cycle"), help="shape of the schedule"
    )
    parser.add_argument("--peak", type=float, required=True, help="peak learning rate")
    parser.add_argument("--steps", type=int, required=True, help="total number of steps")
    parser.add_argument(
        "--warmup", type=int, help="steps up to the peak (one-cycle default: 30 %% of all steps)"
    )
    parser.add_argument(
        "--floor",
        type=float,
        default=0.0,
        help="final rate of the cosine as a fraction of the peak (default: 0)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also write a PNG file")
    parser.add_argument("--json", action="store_true", help="for programs")


def execute(args: argparse.Namespace) -> int:
    """Plot the schedule."""
    share, used = _schedule(args)
    rates = [args.peak * share(step) for step in range(args.steps)]
    if args.plot is not None:
        from holter.reports.plots import schedule

        schedule.draw(rates, args.plot)
        tell(f"plot written to {args.plot}")
    if args.json:
        at = sorted({*range(0, args.steps, max(args.steps // _POINTS, 1)), args.steps - 1})
        fields = {
            "schedule": args.kind,
            "peak": args.peak,
            "steps": args.steps,
            "code": used,
            "rates": {str(step): rates[step] for step in at},
        }
        print(json.dumps(fields, indent=2))
        return 0
    from holter.reports._lines import painted

    lines = _drawn(rates, used, text_width(sys.stdout))
    sys.stdout.write(painted(lines, color=wants_color(sys.stdout)))
    return 0


def _schedule(args: argparse.Namespace) -> tuple[Share, str]:
    """Return the fraction of the peak by step, and the code that builds this schedule."""
    from holter.lab.schedules import OneCycle, WarmupCosine

    if not args.peak > 0:
        raise HolterError(f"--peak is {args.peak:g}; it must be above 0.")
    try:
        if args.kind == "one-cycle":
            if args.floor:
                raise HolterError("--floor applies to warmup-cosine only; one-cycle ends near 0.")
            rising = "" if args.warmup is None else f", warmup={args.warmup}"
            used = f"holter.one_cycle(optimizer, peak={args.peak:g}, steps={args.steps}{rising})"
            return OneCycle(args.steps, args.warmup), used
        if args.warmup is None:
            raise HolterError("Specify the warm-up: --warmup 500, or --warmup 0.")
        floor = f", floor={args.floor:g}" if args.floor else ""
        used = f"holter.warmup_cosine(optimizer, warmup={args.warmup}, steps={args.steps}{floor})"
        return WarmupCosine(args.warmup, args.steps, args.floor), used
    except ValueError as error:
        raise HolterError(f"Invalid schedule: {error}.") from error


def _drawn(rates: list[float], used: str, width: int) -> "list[Line]":
    from holter.reports._chart import chart
    from holter.reports._lines import BLANK, code_spans
    from holter.reports.experiments import Chart

    last = len(rates) - 1
    top = max(range(len(rates)), key=rates.__getitem__)
    half = next((step for step in range(top, last) if rates[step] <= rates[top] / 2), last)
    keys = {0: "first step", top: "peak", half: "half the peak", last: "last step"}
    at = range(0, len(rates), max(len(rates) // _POINTS, 1))
    curve = Chart((*at, last), (*(rates[step] for step in at), rates[last]))
    lines = chart(curve, width=width, low=0.0)
    lines.append(BLANK)
    column = len(f"{last:,}") + 2
    for step, name in sorted(keys.items()):
        lines.append((("  step", "dim"), (f"{step:>{column},}  {rates[step]:<12.3g}{name}", "")))
    mean = sum(rates) / len(rates)
    lines.append((("  mean", "dim"), (f"{'':>{column}}  {mean:.3g}", "")))
    return [*lines, BLANK, code_spans(f"  `schedule = {used}`")]
