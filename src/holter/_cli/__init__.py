"""The command line: one module per command; errors become sentences here and nowhere else."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

from holter import __version__
from holter._cli.parsing import parse
from holter.record.errors import HolterError

COMMANDS = (
    "doctor",
    "run",
    "check",
    "show",
    "try",
    "diff",
    "seeds",
    "explain",
    "rules",
    "schedule",
    "playground",
    "demo",
    "mcp",
)  # modules of this package, in the order of the help

DESCRIPTION = """\
Record the training of a neural network and diagnose what is wrong with it.

`holter run` records a training script to a folder, the run. `holter check` applies rules to a run
and reports the most likely cause with its evidence and the fix. Checking needs no GPU and no torch.
"""

EPILOG = """\
examples:
  holter doctor train.py            run a script, and prove what is wrong with it
  holter run train.py --epochs 3    run an unmodified script, record and diagnose it
  holter check                      diagnose the newest run in ./holter-runs
  holter check RUN --format json    the same, as JSON
  holter show                       the runs in the browser, live
  holter try preflight train.py     test a training script before a long run
  holter diff A B                   first difference of two runs, and of their settings
  holter seeds --n 5 -- python train.py    mean and spread over seeds
  holter explain nonfinite-loss     what a rule detects, and how to fix it
  holter rules                      list all rules

exit codes: 0 no finding at or above --fail-on, 1 at least one finding, 2 usage error or failure.
`holter COMMAND --help` describes a command.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; every error is printed as one sentence."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] not in COMMANDS and not words[0].startswith("-"):
        return _fail(_no_command(words[0]))
    parser = make_parser()
    args = parse(parser, words)
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        if args.command != "run":  # there the output belongs to the script
            _replace_unprintable_characters()
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
            f"internal error, please report it: {type(error).__name__}: {error}"
            " (HOLTER_DEBUG=1 shows the traceback)"
        )
    return code


def make_parser() -> argparse.ArgumentParser:
    """Return the parser with every command."""
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
        own = subparsers.choices[name]
        own.set_defaults(execute=command.execute, parser=own)
    return parser


def _no_command(word: str) -> str:
    """Return what to type in the place of a word that is no command."""
    if word.endswith(".py"):
        return f"Name a command before the script: `holter run {word}` or `holter doctor {word}`."
    near = get_close_matches(word, COMMANDS, n=1)
    hint = f"did you mean `holter {near[0]}`?" if near else "`holter --help` lists all commands."
    return f"There is no command {word!r}; {hint}"


def _replace_unprintable_characters() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _fail(sentence: str) -> int:
    if os.environ.get("HOLTER_DEBUG"):
        import traceback

        traceback.print_exc()
    print(f"holter: {sentence}", file=sys.stderr)
    return 2
