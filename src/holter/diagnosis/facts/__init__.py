"""What rules share about a run, computed once: curve, baseline, outcome, layers, schedule."""
