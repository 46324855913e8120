"""Plots of experiments as PNG files, one module each; matplotlib is imported when needed."""
