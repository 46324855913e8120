"""What the sources in folders show: `python -m bench.reading FOLDER ...`. Nothing is executed."""

import argparse
import sys
from collections import Counter
from pathlib import Path

from holter.scripts.reading import read


def main() -> int:
    """Read every Python file, and print each pattern with its place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="+", type=Path)
    files = [path for each in parser.parse_args().folder for path in sorted(each.rglob("*.py"))]
    kinds: Counter[str] = Counter()
    for path in files:
        for pattern in read(path.read_text(errors="replace")):
            kinds[pattern.kind] += 1
            print(f"{path}:{pattern.line}: {pattern.kind}: {pattern.code}")
    print(f"{len(files)} files, {kinds.total()} places: {dict(kinds)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
