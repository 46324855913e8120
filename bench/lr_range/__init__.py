"""Whose suggestion trains best: holter's lr-range beside the learning-rate finders in use."""
