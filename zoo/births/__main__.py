"""How often the birth is found: operation, line, sample and kind; and what it costs."""

import sys
import time
import warnings

import torch

from holter.lab.birth import find
from zoo.births import corpus


def main() -> None:
    """Judge all specimens, and print what is wrong."""
    right = dict.fromkeys(("operation", "where", "samples", "kind", "phase", "module"), 0)
    births = [each for each in corpus() if not each.healthy]
    quiet = 0
    for each in corpus():
        made = each.build()
        began = time.perf_counter()
        found = find(made.step, made.models, made.optimizers, samples=made.samples)
        took = time.perf_counter() - began
        if each.healthy:
            quiet += found is None
            if found is not None:
                say(f"FALSE ALARM {each.name}: {found.says}")
            continue
        if found is None:
            say(f"MISSED {each.name}")
            continue
        says = {
            "operation": (found.operation, each.operation),
            "where": (found.where if each.where else "", each.where),
            "samples": (found.samples, each.samples),
            "kind": (found.kind, each.kind),
            "phase": (found.phase, each.phase),
            "module": (found.module if each.module else "", each.module),
        }
        for name, (given, truth) in says.items():
            right[name] += given == truth
            if given != truth:
                say(f"{each.name}: {name} is {given!r}, not {truth!r}")
        if "-v" in sys.argv:
            say(f"{each.name} [{took * 1e3:.0f} ms]: {found.says}")
    say(f"{len(births)} births: " + ", ".join(f"{name} {n}" for name, n in right.items()))
    say(f"{len(corpus()) - len(births)} healthy: {quiet} without a birth")


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    main()
