"""A script on the command line: what follows it is passed to the script, options of holter too."""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from holter._cli.parsing import options_of
from holter.record.notices import tell


class PassedOn(argparse.Action):
    """Keeps what follows a script, and which of it are options of holter as well (`mistakable`)."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Store the words."""
        words = [str(word) for word in values or ()]
        known = options_of(parser) - {"-h", "--help"}
        setattr(namespace, self.dest, words)
        namespace.mistakable = [word for word in words if word.partition("=")[0] in known]


def add_script(parser: argparse.ArgumentParser, name: str) -> None:
    """Add a script, whose own arguments follow it, and `-m`."""
    parser.add_argument(name, metavar="SCRIPT", help="script to run, or with -m a module")
    add_script_arguments(parser)
    parser.add_argument("-m", dest="as_module", action="store_true", help="SCRIPT is a module name")


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """Add everything that follows a script."""
    rest = parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, action=PassedOn, help=argparse.SUPPRESS
    )
    rest.required = False  # or argparse asks for arguments where the script is missing


def tell_passed_on(script: str, args: argparse.Namespace, *, as_module: bool = False) -> None:
    """Say that options of holter after the script are the script's, unless its source names them.

    A script that defines `--out` gets its own option; of one that does not, the user is told.
    """
    words = getattr(args, "mistakable", [])
    if not words or os.environ.get("RANK", "0") != "0":
        return
    from holter.scripts.running import find_module, find_script

    source = (find_module(script) if as_module else find_script(script)).source
    names = [word.partition("=")[0] for word in words]
    if unnamed := [name for name in dict.fromkeys(names) if name.encode() not in source]:
        verb, pronoun = ("follows", "it") if len(unnamed) == 1 else ("follow", "them")
        tell(
            f"{', '.join(unnamed)} {verb} {script}: passed to the script; to give {pronoun} to"
            f" holter, put {pronoun} before {script}"
        )
