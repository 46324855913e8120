"""What the sources in folders show: `python -m bench.reading FOLDER ...`. Nothing is executed.

In a folder with `truths.json` (zoo/unrun) the mistakes of the truths are made in its healthy
scripts, and it says how many of them are read: each edit must give a pattern that the script does
not have, each healthy variant none. `--misses` prints those that are not.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holter.scripts.reading import read
from holter.scripts.reading.source.tree import Pattern

TRUTHS = "truths.json"


@dataclass(frozen=True, slots=True)
class Edited:
    """A variant of a healthy script, and the patterns that only the variant has."""

    name: str
    is_fault: bool
    truth: str
    patterns: tuple[Pattern, ...]


def main() -> int:
    """Read every Python file, and print each pattern with its place."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--misses", action="store_true", help="print mistakes that are not read")
    args = parser.parse_args()
    for folder in args.folder:
        if (folder / TRUTHS).exists():
            _print_truths(folder, misses=args.misses)
        else:
            _print_places(folder)
    return 0


def edited(folder: Path) -> Iterator[Edited]:
    """Read each variant of the scripts in a folder."""
    scripts = {path.stem: path.read_text() for path in sorted(folder.glob("base_*.py"))}
    before = {name: {each.kind for each in read(text)} for name, text in scripts.items()}
    for truth in json.loads((folder / TRUTHS).read_text()):
        base = truth["base"].removesuffix(".py")
        text = scripts[base]
        for old, new in truth["replace"]:
            if text.count(old) != 1:
                raise ValueError(f"{truth['name']}: {old!r} is not once in the script")
            text = text.replace(old, new)
        new_ones = tuple(each for each in read(text) if each.kind not in before[base])
        yield Edited(truth["name"], truth["kind"] == "fault", truth["truth"], new_ones)


def _print_truths(folder: Path, *, misses: bool) -> None:
    every = list(edited(folder))
    faults = [each for each in every if each.is_fault]
    healthy = [each for each in every if not each.is_fault]
    if misses:
        for each in faults:
            if not each.patterns:
                print(f"{each.name}: {each.truth}")
    for each in healthy:
        for pattern in each.patterns:
            print(f"healthy {each.name}:{pattern.line}: {pattern.kind}: {pattern.code}")
    found, false = (sum(bool(each.patterns) for each in group) for group in (faults, healthy))
    print(
        f"{folder}: {found} of {len(faults)} mistakes, {false} of {len(healthy)} healthy variants"
    )


def _print_places(folder: Path) -> None:
    files = sorted(folder.rglob("*.py"))
    kinds: Counter[str] = Counter()
    for path in files:
        for pattern in read(path.read_text(errors="replace")):
            kinds[pattern.kind] += 1
            print(f"{path}:{pattern.line}: {pattern.kind}: {pattern.code}")
    print(f"{len(files)} files, {kinds.total()} places: {dict(kinds)}")


if __name__ == "__main__":
    sys.exit(main())
