"""`holter playground`: loss curves, gradients and schedules to try out in the browser."""

import argparse
from typing import TYPE_CHECKING

from holter._cli.show import add_serving, serve

if TYPE_CHECKING:
    from argparse import _SubParsersAction

EPILOG = """\
examples:
  holter playground
  holter playground --port 8123 --no-browser

Networks are trained by PyTorch on this machine, recorded and checked like any other run.
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "playground",
        help="try out loss curves, a gradient simulator, schedules and the diagnosis tree",
        description="Serve the playground: a gallery of loss curves with their diagnoses, networks"
        " that train with\nthe settings you choose (gradients, activations, weights), learning-rate"
        " range and schedules,\nand the diagnosis tree. It is also part of the dashboard"
        " (`holter show`).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_serving(parser)


def execute(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from holter.dashboard.library import Library

    return serve(args, Library([]), "/playground")
