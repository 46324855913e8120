"""Parse the words of a command; an option that does not exist gets the nearest that does."""

import argparse
from collections.abc import Sequence
from difflib import get_close_matches


def parse(
    parser: argparse.ArgumentParser, words: Sequence[str] | None = None
) -> argparse.Namespace:
    """Return what the words mean; exit with one sentence and the usage of the command if nothing.

    `parser` may hold commands: the usage is then that of the one that was named.
    """
    args, unknown = parser.parse_known_args(words)
    if unknown:
        own: argparse.ArgumentParser = getattr(args, "parser", parser)
        own.error(f"unrecognized arguments: {' '.join(unknown)}{_hint(own, unknown[0])}")
    return args


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """Return all options of a command; argparse tells them nowhere else."""
    return set(parser._option_string_actions)  # noqa: SLF001


def _hint(parser: argparse.ArgumentParser, word: str) -> str:
    if advice := parser.get_default("advice"):
        return f"; {advice}"
    near = get_close_matches(word.partition("=")[0], options_of(parser), n=1)
    return f"; did you mean {near[0]}?" if near else ""
