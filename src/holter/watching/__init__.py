"""From a live training to a run: taps, steps, budget, collectors, statistics, black box."""
