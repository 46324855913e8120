"""`holter mcp`: answer a coding agent's questions about runs."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

EPILOG = """\
examples:
  holter mcp                      for runs and logs below the current folder
  holter mcp --root /data/runs

An MCP client starts it, for example by this entry of its configuration:

  {"mcpServers": {"holter": {"command": "holter", "args": ["mcp"]}}}

Tools: list_runs, diagnose, evidence, explain, next_experiment. They only read.
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "mcp",
        help="let a coding agent ask for a diagnosis, its evidence and the next experiment",
        description="Serve the Model Context Protocol on standard input and output, so that a"
        "\ncoding agent can ask for a diagnosis, its evidence and the next experiment.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="read nothing outside of FOLDER (default: the current folder)",
    )


def execute(args: argparse.Namespace) -> int:
    """Serve until the client leaves."""
    from holter.integrations.agents.server import serve
    from holter.record.errors import HolterError

    if not args.root.is_dir():
        raise HolterError(f"--root {args.root} is not a folder.")
    serve(args.root)
    return 0
