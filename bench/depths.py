"""What steps of each depth cost by holter's own account: `python -m bench.depths LOOP`.

Trains a loop of `bench.loops` as `bench.overhead` does once the allowance is used up, and prints
how many steps were read at each depth and what the budget was told that they cost: host time, less
what is hidden behind a GPU.
"""

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.loops import LOOPS, train
from holter.watching import budget
from holter.watching.collectors.moments import Depth


def main() -> int:
    """Train and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("loop", choices=LOOPS)
    parser.add_argument("--steps", type=int, default=400, help="in all; a fifth is not counted")
    args = parser.parse_args()
    budget.ALLOWANCE = 0.02
    told: list[tuple[str, float]] = []
    account = budget.Budget.account

    def listening(self: budget.Budget, depth: Depth, cost: float, *rest: Any, **how: Any) -> None:
        kinds = [name for name in ("dense", "prepares") if how.get(name)]
        told.append((" ".join([depth.name.lower(), *kinds]), cost))
        account(self, depth, cost, *rest, **how)

    budget.Budget.account = listening  # type: ignore[method-assign]
    warm = args.steps // 5
    with tempfile.TemporaryDirectory(prefix="holter-bench-") as folder:
        measured = train(LOOPS[args.loop], "watched", args.steps, warm, Path(folder) / "run")
    costs: dict[str, list[float]] = defaultdict(list)
    for kind, cost in told[warm:]:
        costs[kind].append(1e3 * cost)
    print(f"{args.loop}, {statistics.median(measured['chunks']):.2f} ms a step\n")
    print("| steps | count | mean | largest |\n|---|--:|--:|--:|")
    for kind, read in sorted(costs.items()):
        mean = statistics.fmean(read)
        print(f"| {kind} | {len(read)} | {mean:.3f} ms | {max(read):.2f} ms |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
