"""Records the zoo: `python -m zoo [--seeds 0 1 2] [--only PATTERN]`."""

import argparse
import fnmatch
import time

from zoo.recording import recordings
from zoo.regimes import Regime
from zoo.specimens import corpus


def main() -> None:
    """Record what is not recorded yet, and say how far it is."""
    parser = argparse.ArgumentParser(prog="python -m zoo", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of specimens")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--regime", type=Regime, choices=[*Regime], default=Regime.WHOLE)
    args = parser.parse_args()
    chosen = [each for each in corpus() if fnmatch.fnmatch(each.name, args.only)]
    total, began = len(chosen) * len(args.seeds), time.monotonic()
    found = recordings(chosen, args.seeds, workers=args.workers, regime=args.regime)
    for number, (specimen, seed, _) in enumerate(found, 1):
        spent = time.monotonic() - began
        print(f"{number}/{total} {spent:5.0f} s  {specimen.name} {seed}", flush=True)


if __name__ == "__main__":
    main()
