"""Figures of an evaluation: arguments, thresholds, counts and formulas."""
