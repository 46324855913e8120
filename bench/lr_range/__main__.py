"""Whose learning rate trains best: `python -m bench.lr_range [--write]`.

Each finder is asked for a rate at the start of each workload; each rate is then trained with for
300 steps. `pip install torch-lr-finder lightning fastai` first: a peer that is missing is left
out, and that is said. What was measured is kept in `.cache/lr_range`.
"""

import argparse
import datetime as dt
import fnmatch
import re
import sys
from importlib.metadata import version
from pathlib import Path

import torch

from bench.lr_range.measuring import as_json, from_json, measured, spent
from bench.lr_range.peers import installed
from bench.lr_range.report import as_low_as_any_peer, render
from bench.lr_range.workloads import WORKLOADS

RESULTS = Path(__file__).with_name("results.json")
README = Path(__file__).parent.parent / "README.md"
_PACKAGES = {"torch_lr_finder": "torch-lr-finder", "lightning": "lightning", "fastai": "fastai"}
_TABLE = re.compile(r"(<!-- lr_range -->\n).*?(\n<!-- /lr_range -->)", re.S)


def main() -> int:
    """Measure what is not kept, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[6, 7, 8])
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="of workloads")
    parser.add_argument("--write", action="store_true", help="renew results.json and the README")
    parser.add_argument("--show", action="store_true", help="the tables of results.json again")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.show:
        rows, head = from_json(RESULTS.read_text())
    else:
        names = [n for n in WORKLOADS if any(fnmatch.fnmatch(n, p) for p in args.only)]
        missing = [package for name, package in _PACKAGES.items() if name not in installed()]
        if missing:
            print(f"not installed, and left out: {', '.join(missing)}\n")
        rows = []
        for row in measured(names, args.seeds):
            rows.append(row)
            if sys.stderr.isatty():
                print(
                    f"\r{len(rows)} of {2 * len(names) * len(args.seeds)}", end="", file=sys.stderr
                )
        head = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "versions": {each: version(each) for each in ("torch", *_PACKAGES.values())},
            "cpu_seconds": round(spent()),
        }
    as_low = as_low_as_any_peer(rows)
    said = (
        f"As low as the best peer of each workload, within noise: {_count(as_low, noisy=False)}"
        f" plain, {_count(as_low, noisy=True)} noisy."
    )
    text = f"{said}\n\n{render(rows)}"
    print(text)
    if args.write:
        if not args.show:
            RESULTS.write_text(as_json(rows, head))
        README.write_text(_TABLE.sub(lambda m: f"{m[1]}{text}{m[2]}", README.read_text()))
    return 0


def _count(as_low: dict[tuple[str, bool], bool], *, noisy: bool) -> str:
    of = [value for key, value in as_low.items() if key[1] is noisy]
    return f"{sum(of)} of {len(of)}"


if __name__ == "__main__":
    sys.exit(main())
