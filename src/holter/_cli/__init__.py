"""The command line: one file a command, and the one place where errors become sentences."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from holter import __version__
from holter.record.errors import HolterError

COMMANDS = (
    "run",
    "check",
    "try",
    "explain",
    "rules",
    "schedule",
    "demo",
)  # modules of this package, in the order of the help

DESCRIPTION = """\
Records the training of a neural network and names what is wrong with it.

A run is a recording on disk. Rules read it; each finding comes with its evidence, and the one
that best explains the others leads the report. Reading a run needs no GPU and no torch.
"""

EPILOG = """\
examples:
  holter run train.py --epochs 3    run a script as it is, record it, say what is wrong
  holter check                      what is wrong with the newest run in ./holter-runs
  holter check RUN --format json    the same for programs
  holter try preflight train.py     test a training before it costs anything
  holter explain nonfinite-loss     what a rule looks for, and what to do about it
  holter rules                      all rules

exit codes: 0 nothing at or above --fail-on, 1 something was found, 2 wrong use or an error.
`holter COMMAND --help` tells more of a command.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; whatever goes wrong is told in one sentence."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        if args.command != "run":  # there it is the script's output
            _write_whatever_the_terminal_lacks()
        code: int = args.execute(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as in `holter rules | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except HolterError as error:
        return _fail(str(error))
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _fail(f"{error.strerror or error}{where}")
    except Exception as error:
        return _fail(
            f"this is a fault of holter, please report it: {type(error).__name__}: {error}"
            " (HOLTER_DEBUG=1 shows the traceback)"
        )
    return code


def make_parser() -> argparse.ArgumentParser:
    """The parser with every command."""
    parser = argparse.ArgumentParser(
        prog="holter",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"holter {__version__}")
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name in COMMANDS:
        command = import_module(f"{__name__}.{name}")
        command.add(subparsers)
        subparsers.choices[name].set_defaults(execute=command.execute)
    return parser


def _write_whatever_the_terminal_lacks() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character the terminal lacks is no error
            stream.reconfigure(errors="replace")


def _fail(sentence: str) -> int:
    if os.environ.get("HOLTER_DEBUG"):
        import traceback

        traceback.print_exc()
    print(f"holter: {sentence}", file=sys.stderr)
    return 2
