"""Values of options as text on the command line."""

import argparse
import math
from pathlib import Path

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def cast(text: str, default: object) -> object:
    """Return `text` in the type of `default`, a number if that is None; ValueError if it is not."""
    if isinstance(default, bool):
        if text.lower() not in _WORDS:
            raise ValueError(text)
        return _WORDS[text.lower()]
    if default is None:
        return float(text)
    if isinstance(default, int | float | str):
        return type(default)(text)
    raise ValueError(text)


def kind(default: object) -> str:
    """Return the type of an option in words: `a whole number`."""
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(type(default), "a number" if default is None else type(default).__name__)


def positive(text: str) -> float:
    """Return a number above 0; argparse prints the sentence if it is none."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def positive_whole(text: str) -> int:
    """Return a whole number above 0; argparse prints the sentence if it is none."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def is_function(target: str) -> bool:
    """Whether a target names a function, and not a script."""
    name = target.rpartition(":")[2]
    return ":" in target and name.isidentifier() and not Path(target).exists()


def is_run(target: str) -> bool:
    """Whether a target is the folder of a run, and not a script."""
    return (Path(target) / "meta.json").is_file()
